import { settled, VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import type { SliceProblem } from "../../src/controller/networks/decode.ts";
import type { SliceObject } from "../../src/controller/networks/slice.ts";
import { SliceController } from "../../src/controller/networks/slice-controller.ts";
import { SliceState } from "../../src/controller/networks/slice-state.ts";
import type { Key, SliceWriter } from "../../src/controller/requests.ts";
import { pod, service } from "../support/slices.ts";

/** The API server's slices: a write over an older version is refused. */
class Server implements SliceWriter {
  readonly slices = new Map<string, SliceObject>();
  readonly calls: string[] = [];
  /** Writes of Service web from now on that fail. */
  failing = 0;
  /** What happens while an update is on its way, and while its answer is. */
  before: () => void = () => {};
  after: () => void = () => {};
  #version = 0;

  async create(object: SliceObject) {
    return this.#put(`${object.metadata.generateName}${this.#version + 1}`, object, "create");
  }

  async update(object: SliceObject) {
    const { name = "", resourceVersion } = object.metadata;
    this.before();
    if (!this.slices.has(name)) return undefined;
    if (this.slices.get(name)?.metadata.resourceVersion !== resourceVersion) throw new Error("409 Conflict");
    const stored = this.#put(name, object, "update");
    this.after();
    return stored;
  }

  async remove({ name }: { readonly name: string }) {
    this.#call(`remove ${name}`);
    this.slices.delete(name);
  }

  #put(name: string, object: SliceObject, verb: string) {
    this.#call(`${verb} ${name}`);
    this.#version += 1;
    const stored = { ...object, metadata: { ...object.metadata, name, resourceVersion: String(this.#version) } };
    this.slices.set(name, stored);
    return JSON.parse(JSON.stringify(stored));
  }

  #call(what: string): void {
    this.calls.push(what);
    if (this.failing === 0 || !what.includes(" web-")) return;
    this.failing -= 1;
    throw new Error("503");
  }
}

function running() {
  const [clock, server, state] = [new VirtualClock(), new Server(), new SliceState()];
  const [problems, retries]: [[Key, readonly SliceProblem[]][], number[]] = [[], []];
  let leads = true;
  let pauses = 0;
  const controller = new SliceController({
    state,
    writer: server,
    clock,
    most: 100,
    mayWrite: () => {
      pauses -= 1;
      return leads && pauses !== 0;
    },
    onProblems: (key, of) => problems.push([key, of]),
    onError: (_key, _error, retry) => retries.push(retry),
  });
  const stop = new AbortController();
  state.setService("lab/web", service());
  state.setPod("lab/a", pod({ name: "a", ips: ["192.168.50.10"] }));
  const done = controller.run(stop.signal);
  /** The right to write is lost for one question. */
  const pauseAt = (question: number) => {
    pauses = question;
  };
  const change = async (name: string, raw: unknown, ms = 200) => {
    state.setPod(`lab/${name}`, raw);
    controller.changed();
    await clock.advance(ms);
  };
  return {
    clock,
    server,
    state,
    controller,
    problems,
    retries,
    change,
    stop,
    done,
    lose: () => (leads = false),
    pauseAt,
  };
}

test("changes gather to one write, and what it wrote itself is not written again", async () => {
  const { clock, server, change, controller, state } = running();
  await clock.advance(200);
  expect(server.calls).toEqual(["create web-1"]);
  for (let i = 0; i < 20; i += 1) {
    state.setPod(`lab/p${i}`, pod({ name: `p${i}`, ips: [`192.168.50.${100 + i}`] }));
    controller.changed();
  }
  await clock.advance(200);
  expect(server.calls).toEqual(["create web-1", "update web-1"]);
  await change("a", pod({ name: "a", ips: ["192.168.50.10"] }), 60_000);
  expect(server.calls).toHaveLength(2);
});

test("a write that fails is tried again, later each time; meanwhile other Services go on", async () => {
  const { clock, server, state, controller, retries } = running();
  server.failing = 3;
  await clock.advance(200);
  const other = JSON.parse(
    JSON.stringify(service()).replaceAll('"web"', '"other"').replace('"app":"other"', '"app":"web"'),
  );
  state.setService("lab/other", other);
  await clock.advance(10_000);
  controller.changed();
  await clock.advance(10_000);
  expect(retries).toEqual([500, 1000, 2000]);
  expect([...server.slices.keys()].sort()).toEqual(["other-1", "web-2"]);
});

test("a slice that another client changed is read before it is written", async () => {
  const { clock, server, state, change, retries } = running();
  await clock.advance(200);
  const [[name, slice] = []] = [...server.slices];
  if (slice === undefined || name === undefined) throw new Error("there is a slice");
  const theirs = { ...slice, endpoints: [], metadata: { ...slice.metadata, resourceVersion: "9" } };
  server.slices.set(name, theirs);
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }));
  expect(retries).toEqual([500]);
  state.setSlice(`lab/${name}`, JSON.parse(JSON.stringify(theirs)));
  await clock.advance(1000);
  expect([...server.slices.values()].flatMap(({ endpoints }) => endpoints)).toHaveLength(2);
});

test("problems are reported when they change, and when they are over", async () => {
  const { clock, problems, change } = running();
  await clock.advance(200);
  await change("b", pod({ name: "b", status: null }));
  await change("a", pod({ name: "a", ips: ["192.168.50.10"], ready: false }));
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }));
  expect(problems).toMatchObject([
    ["lab/web", [{ reason: "NoNetworkStatus", pod: "b" }]],
    ["lab/web", []],
  ]);
});

test("the watch is behind own writes: what they have replaced does not come back, what another wrote does", async () => {
  const { clock, server, state, change, retries } = running();
  await clock.advance(200);
  const current = () => JSON.parse(JSON.stringify([...server.slices.values()][0]));
  const late = [current()];
  for (const [name, ip] of [
    ["b", "192.168.50.11"],
    ["c", "192.168.50.12"],
  ] as const) {
    await change(name, pod({ name, ips: [ip] }));
    late.push(current());
  }
  for (const version of late) {
    state.setSlice("lab/web-1", version);
    await change("d", pod({ name: "d", ips: ["192.168.50.13"], ready: version === late[0] }));
  }
  expect(retries).toEqual([]);
  const theirs = { ...current(), endpoints: [] };
  theirs.metadata.resourceVersion = "90";
  server.slices.set("web-1", theirs);
  state.setSlice("lab/web-1", theirs);
  await change("d", pod({ name: "d", ips: ["192.168.50.13"] }));
  expect(retries).toEqual([]);
  expect(current().endpoints).toHaveLength(4);
});

test("what the watch brings before the answer to a write is later than the answer", async () => {
  const { clock, server, state, change, retries } = running();
  await clock.advance(200);
  server.after = () => {
    server.after = () => {};
    const slice = JSON.parse(JSON.stringify(server.slices.get("web-1")));
    const theirs = { ...slice, endpoints: [], metadata: { ...slice.metadata, resourceVersion: "90" } };
    server.slices.set("web-1", theirs);
    state.setSlice("lab/web-1", theirs);
  };
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }), 1000);
  expect(retries).toEqual([]);
  expect(server.slices.get("web-1")?.endpoints).toHaveLength(2);
});

test("a slice that is gone when it is to be written is created", async () => {
  const { clock, server, change, retries } = running();
  await clock.advance(200);
  server.before = () => void server.slices.clear();
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }), 1000);
  expect(retries).toEqual([]);
  expect([...server.slices.values()].flatMap(({ endpoints }) => endpoints)).toHaveLength(2);
});

test("a write that waits while the right to write is lost for a moment is not forgotten", async () => {
  const { clock, server, change, pauseAt } = running();
  await clock.advance(200);
  pauseAt(2);
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }));
  expect(server.calls).toEqual(["create web-1", "update web-1"]);
});

test("an instance that may not write any more writes nothing more", async () => {
  const { clock, server, change, lose, done } = running();
  await clock.advance(200);
  lose();
  await change("b", pod({ name: "b", ips: ["192.168.50.11"] }));
  await done;
  expect(server.calls).toEqual(["create web-1"]);
});

test("an end is one at any moment", async () => {
  const { clock, stop, done } = running();
  await clock.advance(50);
  stop.abort();
  await done;
  await settled();
  expect(clock.pending).toEqual([]);
});
