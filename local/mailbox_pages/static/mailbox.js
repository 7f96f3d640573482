// Shows new mails without a reload: asks every two seconds while the page is seen; the server says 304 without news.
const list = document.getElementById("mails");
let tag = "";

async function look() {
  if (document.hidden) return;
  const reply = await fetch(location.href, {
    headers: tag ? { "If-None-Match": tag } : {},
    cache: "no-store",
    signal: AbortSignal.timeout(5000),
  });
  if (reply.status !== 200) return;
  tag = reply.headers.get("ETag") ?? "";
  const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("mails");
  if (!fresh || fresh.innerHTML === list.innerHTML) return;
  const focused = document.activeElement?.getAttribute("href");
  list.replaceChildren(...fresh.childNodes);
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

async function keepLooking() {
  try {
    await look();
  } catch {
    // The platform is gone or restarts: the next look tells.
  }
  setTimeout(keepLooking, 2000);
}

document.addEventListener("visibilitychange", () => look().catch(() => {}));
setTimeout(keepLooking, 2000);
