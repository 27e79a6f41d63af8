import { expect, test } from "vitest";
import { Session } from "../src/server/session.ts";

test("the token is good for one cookie, which no script reads and no other site sends", () => {
  const session = new Session("/abc/");
  const header = session.exchange(session.token) ?? "";
  expect(header).toMatch(/^fairlead=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/abc\/$/);
  expect(session.knows(`other=1; ${header.split(";", 1)[0]}`)).toBe(true);
  expect(session.exchange(session.token)).toBeUndefined();
});

test.each([
  ["nothing", ""],
  ["a guess", "AAAA"],
])("%s opens nothing", (_what, token) => {
  const session = new Session("/");
  expect(session.exchange(token)).toBeUndefined();
  expect(session.exchange(session.token)).toBeDefined();
});

test.each([undefined, "", "fairlead=", "fairlead=guess", "other=x"])("a cookie %j is not known", (header) => {
  const session = new Session("/");
  session.exchange(session.token);
  expect(session.knows(header)).toBe(false);
});

test("two sessions share nothing", () => {
  const [one, other] = [new Session("/"), new Session("/")];
  expect(other.exchange(one.token)).toBeUndefined();
  const cookie = one.exchange(one.token)?.split(";", 1)[0];
  expect(other.knows(cookie)).toBe(false);
});
