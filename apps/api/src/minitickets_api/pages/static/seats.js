// The seat map: count and total, at most ten, sold seats kept fresh, arrow keys, a choice that outlives a reload.
// Without this script the form works all the same.

const form = document.getElementById("booking");
const boxes = [...form.querySelectorAll("input[name=seat]")];
const byName = new Map(boxes.map((box) => [box.value, box]));
const choice = document.getElementById("choice");
const news = document.getElementById("news");
const book = document.getElementById("book");
const left = document.getElementById("left");
const most = Number(form.dataset.most);
const price = Number(form.dataset.price);
const digits = Number(form.dataset.digits);
const memory = `seats:${form.dataset.event}`;
const initial = choice.textContent;

function amount(minor) {
  const value = (minor / 10 ** digits).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${form.dataset.currency} ${value}`;
}

function chosen() {
  return boxes.filter((box) => box.checked);
}

function show() {
  const names = chosen().map((box) => box.value);
  if (names.length === 0) choice.textContent = initial;
  else choice.textContent = `${names.length} of ${most} chosen: ${names.join(", ")}. Total ${amount(names.length * price)}.`;
  book.textContent = names.length === 0 ? "Book" : `Book ${names.length} ${names.length === 1 ? "seat" : "seats"}`;
  try {
    if (names.length) sessionStorage.setItem(memory, JSON.stringify(names));
    else sessionStorage.removeItem(memory);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
}

function tell(text) {
  news.classList.remove("hidden");
  news.className = "notice";
  news.textContent = text;
}

form.addEventListener("change", (event) => {
  const box = event.target;
  if (box.name !== "seat") return;
  if (box.checked && chosen().length > most) {
    box.checked = false;
    tell(`A booking has at most ${most} seats. Give one back to choose ${box.value}.`);
  } else if (!news.classList.contains("hidden")) {
    news.className = "hidden";
  }
  show();
});

form.addEventListener("submit", (event) => {
  if (event.submitter !== book || chosen().length) return;
  event.preventDefault();
  tell("Choose a seat first.");
  boxes.find((box) => !box.disabled)?.focus();
});

// Arrow keys walk the map as the eye does; Tab goes from seat to seat as everywhere.
const rows = [...form.querySelectorAll(".seats")].map((row) => [...row.querySelectorAll("input[name=seat]")]);
const isMap = form.querySelector(".map") !== null;

function neighbour(box, key) {
  const r = rows.findIndex((row) => row.includes(box));
  const free = (row) => row.filter((seat) => !seat.disabled);
  const row = free(rows[r]);
  const i = row.indexOf(box);
  if (key === "ArrowRight") return row[i + 1];
  if (key === "ArrowLeft") return row[i - 1];
  if (key === "Home") return row[0];
  if (key === "End") return row[row.length - 1];
  const step = key === "ArrowDown" ? 1 : -1;
  const x = box.getBoundingClientRect().left;
  for (let next = r + step; next >= 0 && next < rows.length; next += step) {
    const there = free(rows[next]);
    if (there.length === 0) continue;
    const distance = (seat) => Math.abs(seat.getBoundingClientRect().left - x);
    return there.reduce((best, seat) => (distance(seat) < distance(best) ? seat : best));
  }
  return undefined;
}

if (isMap) {
  form.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    if (event.target.name !== "seat" || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    neighbour(event.target, event.key)?.focus();
  });
}

// Sold seats, kept fresh. A choice that somebody else was faster with is named; the rest stays.
function sell(box, isSold) {
  const text = box.nextElementSibling;
  box.disabled = isSold;
  if (isSold) box.checked = false;
  if (isMap) box.setAttribute("aria-label", `Seat ${box.value}${isSold ? ", sold" : ""}`);
  else text.textContent = `Seat ${box.value}${isSold ? ", sold" : ""}`;
}

function refresh(event) {
  const lost = [];
  for (const seat of event.seats) {
    const box = byName.get(seat.name);
    if (!box || box.disabled === seat.isTaken) continue;
    if (box.checked) lost.push(box.value);
    sell(box, seat.isTaken);
  }
  const noun = event.seatsFree === 1 ? "seat" : "seats";
  left.textContent = `${event.seatsFree.toLocaleString("en-US")} ${noun} of ${event.seatsTotal.toLocaleString("en-US")}`;
  if (lost.length) {
    const rest = chosen().length ? "The rest of your choice is still here." : "Choose others.";
    tell(`${lost.join(", ")} ${lost.length === 1 ? "was" : "were"} booked by somebody else a moment ago. ${rest}`);
    show();
  }
}

const usual = boxes.length > 500 ? 15_000 : 5_000; // the whole hall comes each time
let pause = usual;
let timer;

async function look() {
  try {
    const input = encodeURIComponent(JSON.stringify({ eventId: form.dataset.event }));
    const reply = await fetch(`/trpc/events.byId?input=${input}`, { signal: AbortSignal.timeout(10_000) });
    if (!reply.ok) throw new Error(String(reply.status));
    refresh((await reply.json()).result.data);
    pause = usual;
  } catch {
    pause = Math.min(pause * 2, 60_000);
  }
  plan();
}

function plan() {
  clearTimeout(timer);
  // Not all at once: everybody opened the page when the sale began.
  if (!document.hidden) timer = setTimeout(look, pause * (0.75 + Math.random() / 2));
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden) look();
});

// What the server says of the choice counts (a refused booking, the way through the login); else what was chosen here.
if (!("decided" in form.dataset)) {
  try {
    for (const name of JSON.parse(sessionStorage.getItem(memory) ?? "[]")) {
      const box = byName.get(name);
      if (box && !box.disabled && chosen().length < most) box.checked = true;
    }
  } catch {
    // As above.
  }
}
show();
plan();
