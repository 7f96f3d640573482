// Keeps My tickets for when there is no network, and nothing else. What it keeps goes when somebody logs in or out.

const TICKETS = "tickets";
const PAGE = "/tickets";
const IMAGE = /^\/tickets\/[0-9a-f-]{36}\/[A-Z0-9-]{1,8}\.png$/;
const ACCOUNT = /^\/(login|logout|register|reset-password|trpc\/.*auth\..*)$/;

// Counts who is at the keyboard: what was fetched for somebody else must not be kept.
let person = 0;
const shownFromHere = new Map(); // a window, and when what it shows was kept

async function forget() {
  person += 1;
  shownFromHere.clear();
  await caches.delete(TICKETS);
}

async function put(request, response, since) {
  const headers = new Headers(response.headers);
  headers.delete("content-encoding"); // what is kept is unpacked
  headers.delete("content-length");
  headers.set("x-kept-at", new Date().toISOString());
  const copy = new Response(await response.blob(), { status: response.status, headers });
  const cache = await caches.open(TICKETS);
  if (since !== person) return;
  await cache.put(request, copy);
  // Somebody may have logged out while it was written.
  if (since !== person) await caches.delete(TICKETS);
}

async function fromNetwork(event) {
  const { request } = event;
  const path = new URL(request.url).pathname;
  const since = person;
  try {
    const response = await fetch(request);
    // Led to the login: whoever the tickets are of has gone. (A navigation's redirect stays opaque.)
    if (response.type === "opaqueredirect" || response.redirected || response.status === 401) await forget();
    else if (response.ok) event.waitUntil(put(path, response.clone(), since));
    else if (response.status === 404) await (await caches.open(TICKETS)).delete(path);
    if (response.status < 500) return response;
    return (await kept(event, path)) ?? response;
  } catch (error) {
    const copy = await kept(event, path);
    if (copy) return copy;
    throw error;
  }
}

async function kept(event, path) {
  const copy = await caches.match(path, { cacheName: TICKETS });
  if (copy && path === PAGE) shownFromHere.set(event.resultingClientId, copy.headers.get("x-kept-at"));
  return copy;
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.origin !== self.location.origin) return;
  if (event.request.method === "POST") {
    if (ACCOUNT.test(url.pathname)) event.respondWith(forget().then(() => fetch(event.request)));
  } else if (event.request.method !== "GET") {
    return;
  } else if (url.pathname === PAGE || IMAGE.test(url.pathname)) {
    event.respondWith(fromNetwork(event));
  } else if (url.pathname.startsWith("/static/")) {
    event.respondWith(caches.match(url.pathname, { cacheName: TICKETS }).then((copy) => copy ?? fetch(event.request)));
  }
});

// The page tells what belongs to it: what is missing is fetched, what is no longer of it goes.
async function keep(paths, since) {
  const cache = await caches.open(TICKETS);
  const wanted = new Set(paths);
  for (const request of await cache.keys()) {
    if (!wanted.has(new URL(request.url).pathname)) await cache.delete(request);
  }
  await Promise.all(
    paths.map(async (path) => {
      if (since !== person || (await cache.match(path))) return;
      const response = await fetch(path, { credentials: "same-origin", redirect: "manual" });
      if (response.ok) await put(path, response, since);
    }),
  );
}

self.addEventListener("message", (event) => {
  if (!event.data.keep) return;
  const keptAt = shownFromHere.get(event.source.id);
  if (keptAt) {
    shownFromHere.delete(event.source.id);
    event.source.postMessage({ keptAt });
  } else {
    event.waitUntil(keep(event.data.keep, person).catch(() => {}));
  }
});
