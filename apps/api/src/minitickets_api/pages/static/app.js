// Every page: what a browser does not do by itself.

// autofocus is honoured once a page; a page that comes back from the history has had it.
const problems = document.getElementById("problems");
if (problems) problems.focus();

// A second press of a button must not look as if nothing had happened. (It would do no harm: forms carry a key.)
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  const button = event.submitter;
  if (button && event.target.method === "post") {
    // After the event: a disabled button would not be sent.
    setTimeout(() => { button.disabled = true; });
  }
});
// Back from the history: the form was sent, so sending it again is a new wish under a new key.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const button of document.querySelectorAll("form button:disabled")) button.disabled = false;
  for (const key of document.querySelectorAll("input[name=idempotencyKey]")) {
    key.value = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
});
