import { errorChainText } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { createLog } from "../src/log.ts";

function collect(format: "text" | "json", verbosity = 0) {
  const lines: string[] = [];
  const now = () => new Date(2030, 0, 31, 3, 58, 31, 755).getTime();
  return { lines, log: createLog({ format, verbosity, write: (line) => lines.push(line), now }) };
}

describe("log", () => {
  test("text has klog's form", () => {
    const { lines, log } = collect("text");
    log.info("Sync done", { ipFamily: "IPv4", milliseconds: 12, cidrs: ["10.0.0.0/8"], ok: true });
    log.warn("careful");
    log.error("broken");
    const pid = String(process.pid).padStart(7);
    expect(lines).toEqual([
      `I0131 03:58:31.755000 ${pid} fairlead] "Sync done" ipFamily="IPv4" milliseconds=12 cidrs="[\\"10.0.0.0/8\\"]" ok="true"\n`,
      `W0131 03:58:31.755000 ${pid} fairlead] "careful"\n`,
      `E0131 03:58:31.755000 ${pid} fairlead] "broken"\n`,
    ]);
  });

  test("no value begins a line of its own", () => {
    const { lines, log } = collect("text");
    log.info("a\nE0131", { name: "x\nI0131 fake] line", undef: undefined });
    expect(lines.join("").split("\n")).toHaveLength(2);
  });

  /** Right-to-left override and isolate, line separator, zero width space, next line, a tag. */
  const hidden = "a\u202eb\u2066c\u2028d\u200be\u0085f\u{e0041}g";

  test.each(["text", "json"] as const)("%s shows what would hide or turn the rest of the line round", (format) => {
    const { lines, log } = collect(format);
    log.warn(`message ${hidden}`, { [`name${hidden}`]: hidden, list: [hidden] });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\u0080-\u009f]/u);
    expect(lines[0]).toContain("a\\u202eb\\u2066c\\u2028d\\u200be\\u0085f\\udb40\\udc41g");
    if (format === "json") expect(JSON.parse(lines[0] ?? "")).toMatchObject({ list: [hidden] });
  });

  test("letters of whatever script stay as they are", () => {
    const { lines, log } = collect("text");
    log.info("שלום Ünïcode 日本 👍");
    expect(lines[0]).toContain('"שלום Ünïcode 日本 👍"');
  });

  test("JSON has one object a line with ts, v and msg", () => {
    const { lines, log } = collect("json", 2);
    log.verbose(2, "Sync done", { ipFamily: "IPv6" });
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      level: "info",
      ts: new Date(2030, 0, 31, 3, 58, 31, 755).getTime(),
      v: 2,
      ipFamily: "IPv6",
      msg: "Sync done",
    });
  });

  test("verbosity is a threshold", () => {
    const { lines, log } = collect("json", 2);
    for (const verbosity of [1, 2, 3, 4]) log.verbose(verbosity, `at ${verbosity}`);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["at 1", "at 2"]);
  });

  test("an error is logged with its causes, each once", () => {
    const inner = new Error("exit code 4: line 12 failed");
    expect(errorChainText(new Error("iptables-restore failed", { cause: inner }))).toBe(
      "iptables-restore failed: exit code 4: line 12 failed",
    );
    expect(errorChainText(new Error("outer (inner)", { cause: new Error("inner") }))).toBe("outer (inner)");
    expect(errorChainText("text")).toBe("text");
  });
});
