// One booking: follows it until its tickets are ready, and asks before it is cancelled.

const steps = document.getElementById("steps");
const dialog = document.getElementById("cancel");

if (dialog) {
  document.getElementById("cancel-link").addEventListener("click", (event) => {
    event.preventDefault();
    dialog.showModal();
  });
  document.getElementById("keep").addEventListener("click", () => dialog.close());
}

function set(id, state, title, text) {
  const step = document.getElementById(id);
  step.className = state;
  step.querySelector("strong").textContent = title;
  step.querySelector("span").textContent = text;
}

function show(booking) {
  const { handedOver, parked, ticketsReady: ready, ticketsTotal: total } = booking;
  if (parked) {
    set("step-handed", "stuck", "Not handed over", "Something is in the way on our side. Your seats are safe; we are told of it.");
  } else if (handedOver) {
    set("step-handed", "done", "Handed over", `A mail is on its way to ${steps.dataset.email}. This page cannot see your inbox.`);
  }
  if (ready === total) {
    set("step-tickets", "done", "Tickets ready", `${total} ${total === 1 ? "ticket" : "tickets"} to show at the door.`);
    document.getElementById("ready").hidden = false;
  } else if (ready === null) {
    set("step-tickets", "", "Tickets", "They cannot be looked up just now; they are made all the same.");
  } else {
    set("step-tickets", handedOver ? "now" : "", "Tickets", `${ready} of ${total} ready.`);
  }
  // Said once for whoever listens, and only when it is another sentence than before.
  const said = [...steps.querySelectorAll("li")].map((step) => step.innerText.replace(/\s+/g, " ").trim()).join(" ");
  const progress = document.getElementById("progress");
  if (progress.textContent !== said) progress.textContent = said;
  return parked || (handedOver && ready === total);
}

let pause = 700;
let timer;

async function look() {
  let isFinished = false;
  try {
    const input = encodeURIComponent(JSON.stringify({ bookingId: steps.dataset.booking }));
    const reply = await fetch(`/trpc/bookings.byId?input=${input}`, { signal: AbortSignal.timeout(10_000) });
    if (reply.status === 401) return location.reload(); // logged out elsewhere
    if (!reply.ok) throw new Error(String(reply.status));
    const booking = (await reply.json()).result.data;
    if (booking.status === "cancelled") return location.reload(); // in another window
    isFinished = show(booking);
  } catch {
    // Asked again below.
  }
  pause = Math.min(pause * 1.4, 30_000);
  if (!isFinished && !document.hidden) timer = setTimeout(look, pause);
  return undefined;
}

if (steps) {
  // The seats are booked: nothing is being chosen any more.
  try {
    sessionStorage.removeItem(`seats:${steps.dataset.event}`);
  } catch {
    // Storage is switched off.
  }
  if (!("finished" in steps.dataset)) {
    timer = setTimeout(look, pause);
    document.addEventListener("visibilitychange", () => {
      clearTimeout(timer);
      if (!document.hidden) look();
    });
  }
}
