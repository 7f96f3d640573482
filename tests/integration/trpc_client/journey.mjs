// A customer's journey through the real tRPC client. Arguments: the API's origin, "plain" or "batch", an event's id.
// Prints one JSON object of what it saw; the test in Python judges it.
import { createTRPCUntypedClient, httpBatchLink, httpLink, isTRPCClientError } from "@trpc/client";

const [origin, kind, eventId] = process.argv.slice(2);
let cookie = "";
const requests = [];

async function fetchWithCookie(url, options) {
  const headers = { ...options.headers, ...(cookie && { cookie }) };
  const reply = await fetch(url, { ...options, headers });
  requests.push({ method: options.method, path: new URL(url).pathname, status: reply.status });
  const given = reply.headers.getSetCookie()[0];
  if (given) cookie = given.split(";")[0];
  return reply;
}

const link = kind === "batch" ? httpBatchLink : httpLink;
const client = createTRPCUntypedClient({ links: [link({ url: `${origin}/trpc`, fetch: fetchWithCookie })] });

async function refusal(promise) {
  try {
    return { unexpected: await promise };
  } catch (error) {
    if (!isTRPCClientError(error)) throw error;
    return { message: error.message, shape: error.shape?.code, ...error.data };
  }
}

const password = "correct horse battery";
const email = `${crypto.randomUUID()}@example.org`;
const seat = kind === "batch" ? "A-2" : "A-1";
const wish = (seats) => ({ eventId, seats, idempotencyKey: crypto.randomUUID() });

const seen = {};
seen.noSession = await refusal(client.mutation("bookings.create", wish([seat])));
seen.registered = await client.mutation("auth.register", { email, name: "Ada Lovelace", password });
seen.emailTaken = await refusal(client.mutation("auth.register", { email, name: "Eve", password }));
seen.me = await client.query("auth.me");
seen.events = await client.query("events.list");
seen.event = await client.query("events.byId", { eventId });
seen.booked = await client.mutation("bookings.create", wish([seat]));
seen.seatTaken = await refusal(client.mutation("bookings.create", wish([seat])));
seen.badInput = await refusal(client.mutation("bookings.create", wish([])));
seen.unknownEvent = await refusal(client.query("events.byId", { eventId: crypto.randomUUID() }));
seen.unknownProcedure = await refusal(client.query("bookings.steal"));
// At once, so that the batch link puts them into one request; one of them is refused.
[seen.tickets, seen.mine, seen.mixed] = await Promise.all([
  client.query("tickets.mine"),
  client.query("bookings.mine", { limit: 10 }),
  refusal(client.query("events.byId", { eventId: "no id" })),
]);
seen.loggedOut = await client.mutation("auth.logout");
seen.afterwards = await refusal(client.query("bookings.mine"));
seen.requests = requests;
console.log(JSON.stringify(seen));
