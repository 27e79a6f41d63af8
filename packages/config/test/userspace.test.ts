import { describe, expect, test } from "vitest";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

const MODE = "--proxy-mode=userspace";

describe("userspace mode", () => {
  test("its defaults are kube-proxy's of v1.25, where that had any", () => {
    const { mode, portRange, userspace } = configOf(parse([MODE]));
    expect({ mode, portRange }).toEqual({ mode: "userspace", portRange: undefined });
    expect(userspace).toMatchObject({
      only: false,
      udpIdleTimeoutMs: 250,
      tcpIdleTimeoutMs: 86_400_000,
      maxSockets: 32_000,
      maxSocketsPerService: 16_000,
    });
  });

  test("flags and files say the same", () => {
    const flags = parse([
      MODE,
      "--proxy-port-range=10000+100",
      "--udp-timeout=2s",
      "--userspace-tcp-idle-timeout=0",
      "--userspace-max-sockets=500",
      "--userspace-max-sockets-per-service=50",
    ]);
    const file = parseFile(
      "mode: userspace",
      "portRange: 10000-10100",
      "udpIdleTimeout: 2s",
      "---",
      "apiVersion: fairlead.dev/v1alpha1",
      "kind: FairleadConfiguration",
      "userspace: {tcpIdleTimeout: 0s, maxSockets: 500, maxSocketsPerService: 50}",
    );
    expect(configOf(flags).userspace).toEqual(configOf(file).userspace);
    expect(configOf(flags).portRange).toEqual(configOf(file).portRange);
    expect(configOf(file).userspace).toMatchObject({ udpIdleTimeoutMs: 2_000, tcpIdleTimeoutMs: 0, maxSockets: 500 });
  });

  test("what is wrong is named", () => {
    expect(errorsOf(parse([MODE, "--udp-timeout=-1s", "--userspace-max-sockets=1"]))).toEqual([
      expect.stringMatching(/^--userspace-max-sockets=1: must be a whole number/),
      "--udp-timeout=-1s: must be greater than 0, such as 250ms",
    ]);
    expect(errorsOf(parse(["--userspace-only"]))).toEqual(["--userspace-only=true: needs --proxy-mode=userspace"]);
  });
});
