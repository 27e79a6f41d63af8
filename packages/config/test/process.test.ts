import { describe, expect, test } from "vitest";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

const settings = (...flags: string[]) => configOf(parse(flags)).serviceMetrics;

describe("metrics of services", () => {
  test("are none unless namespaces are named", () => {
    expect(settings()).toBeUndefined();
    expect(settings("--service-metrics=")).toBeUndefined();
    expect(settings("--service-metrics-max-series=5")).toBeUndefined();
  });

  test("of some namespaces, or of all", () => {
    expect(settings("--service-metrics=shop,kube-system,shop")).toEqual({
      namespaces: ["shop", "kube-system"],
      maxSeries: 2_000,
    });
    expect(settings("--service-metrics=shop,*", "--service-metrics-max-series=10000")).toEqual({
      namespaces: "all",
      maxSeries: 10_000,
    });
  });

  test("are fields of FairleadConfiguration as well", () => {
    const file = parseFile(
      "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nserviceMetrics: {namespaces: [shop], maxSeries: 7}",
    );
    expect(configOf(file).serviceMetrics).toEqual({ namespaces: ["shop"], maxSeries: 7 });
  });

  test.each([
    [["--service-metrics=shop,Web Shop"], "--service-metrics=Web Shop: must be the name of a namespace, or * for all"],
    [
      ["--service-metrics=*", "--service-metrics-max-series=10001"],
      "--service-metrics-max-series=10001: must be a whole number from 1 to 10000",
    ],
    [
      ["--service-metrics=*", "--proxy-mode=userspace", "--userspace-only"],
      '--service-metrics=["*"]: are read from connection tracking, which --userspace-only does not use',
    ],
  ])("%j is refused", (flags, error) => {
    expect(errorsOf(parse(flags))).toEqual([error]);
  });
});
