// My tickets: large and bright at the door, kept for when there is no network, and complete without a reload.

const bright = document.getElementById("bright");
const picture = bright.querySelector("img");
let lock;

async function stayAwake() {
  try {
    lock = await navigator.wakeLock?.request("screen");
  } catch {
    // The battery is low, or the browser does not: the screen dims as it always does.
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.qr");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const seat = link.closest("[data-seat]").dataset.seat;
  picture.src = link.href;
  picture.alt = link.querySelector("img").alt;
  document.getElementById("bright-title").textContent = `${link.dataset.title}, seat ${seat}`;
  bright.showModal();
  stayAwake();
});
document.getElementById("dim").addEventListener("click", () => bright.close());
bright.addEventListener("click", (event) => {
  if (event.target === bright) bright.close();
});
bright.addEventListener("close", () => {
  lock?.release();
  lock = undefined;
});

// Tickets that were still being made.
const waiting = () => [...document.querySelectorAll(".ticket:has(.waiting)")];
let pause = 2_000;

function finish(place, title) {
  const { booking, seat } = place.dataset;
  const path = `/tickets/${booking}/${seat}.png`;
  const link = Object.assign(document.createElement("a"), { className: "qr", href: path });
  link.dataset.title = title;
  link.append(Object.assign(new Image(272, 272), { src: path, alt: `QR code for seat ${seat}: ${title}` }));
  place.querySelector(".waiting").replaceWith(link);
}

async function look() {
  try {
    const reply = await fetch("/trpc/tickets.mine", { signal: AbortSignal.timeout(10_000) });
    if (!reply.ok) throw new Error(String(reply.status));
    const { tickets } = (await reply.json()).result.data;
    const ready = new Map(tickets.filter((ticket) => ticket.imageUrl).map((ticket) => [ticket.ticketId, ticket.eventTitle]));
    for (const place of waiting()) {
      const title = ready.get(`${place.dataset.booking}:${place.dataset.seat}`);
      if (title !== undefined) finish(place, title);
    }
  } catch {
    // Asked again below.
  }
  pause = Math.min(pause * 1.5, 60_000);
  if (waiting().length) setTimeout(look, pause);
  else keep();
}
if (waiting().length) setTimeout(look, pause);

// For when there is no network: this page, its tickets, and what it needs to look like itself.
async function keep() {
  if (!("serviceWorker" in navigator)) return;
  const worker = (await navigator.serviceWorker.ready).active;
  const paths = [...document.querySelectorAll("a.qr img, head link[rel=stylesheet], head script[src]")].map(
    (element) => new URL(element.src || element.href).pathname,
  );
  worker.postMessage({ keep: ["/tickets", ...paths] });
}

if ("serviceWorker" in navigator) {
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    if (!data.keptAt) return;
    const kept = document.getElementById("kept");
    // Worded as the pages word dates, on the clock of this device.
    const asOf = new Date(data.keptAt).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
    kept.textContent = `There is no connection. These are your tickets as of ${asOf}.`;
    kept.hidden = false;
  });
  navigator.serviceWorker.startMessages();
  navigator.serviceWorker.register("/sw.js").then(keep, () => {});
}
