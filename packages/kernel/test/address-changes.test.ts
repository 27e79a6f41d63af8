import { settled, VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createNodeAddresses, NetlinkError } from "../src/index.ts";
import { TYPES } from "../src/links/numbers.ts";
import type { ListeningSocket } from "../src/netlink/listening.ts";
import type { OpenNetlink } from "../src/netlink/socket.ts";
import { answered, done as dumpDone } from "./netlink/scripted.ts";

const ENOBUFS = 105;

/** Addresses that are listed by netlink and followed by what a socket says. */
function following(listen: () => Promise<ListeningSocket>) {
  const timers = new VirtualClock();
  const stop = new AbortController();
  const calls: string[] = [];
  const runner = new FakeRunner({
    ip: (args) => {
      calls.push(args.join(" "));
      return "[]";
    },
  });
  let lists = 0;
  const open: OpenNetlink = async () => {
    let asked: Buffer | undefined;
    return {
      send: async (bytes) => {
        asked = Buffer.from(bytes);
        if (asked.readUInt16LE(4) === TYPES.getAddress) lists++;
      },
      receive: async (into) => into.subarray(0, answered(dumpDone, asked).copy(into)),
      close: async () => {},
    };
  };
  const addresses = createNodeAddresses(runner, { timers, listen, open });
  const done = (async () => {
    for await (const _ of addresses.watch({ signal: stop.signal }));
  })();
  const end = async () => {
    stop.abort();
    await done;
  };
  return { timers, calls, lists: () => lists, end };
}

test("what could not be kept leads to a list, and no process listens", async () => {
  const told: Error[] = [];
  let closed = 0;
  const socket: ListeningSocket = {
    join: () => {},
    leave: () => {},
    receive() {
      const next = told.shift();
      if (next === undefined) return undefined;
      throw next;
    },
    close: () => void closed++,
  };
  const { timers, calls, lists, end } = following(async () => socket);
  await timers.advance(5_000);
  expect(lists()).toBe(2);
  told.push(new NetlinkError("reading", ENOBUFS));
  await timers.advance(2_000);
  expect([lists(), calls]).toEqual([3, []]);
  await end();
  expect(closed).toBe(1);
});

test("without netlink a process listens", async () => {
  const { calls, end } = following(async () => {
    throw new Error("koffi has no binary for this machine");
  });
  await settled();
  expect(calls).toContain("-oneline monitor address");
  await end();
});
