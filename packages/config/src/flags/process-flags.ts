import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";

/** The process itself: what it serves, what it logs, what it is started for. */
export const PROCESS_FLAGS: readonly FlagGroup[] = [
  {
    title: "Health and metrics",
    flags: [
      {
        name: "healthz-bind-address",
        type: type.ipPort,
        fields: ["healthzBindAddress"],
        defaultText: "0.0.0.0:10256",
        help: "Address and port that serve /healthz and /livez.",
      },
      {
        name: "metrics-bind-address",
        type: type.ipPort,
        fields: ["metricsBindAddress"],
        defaultText: "127.0.0.1:10249",
        help: "Address and port that serve /metrics and the other local pages.",
      },
      {
        name: "bind-address-hard-fail",
        type: type.boolean,
        fields: ["bindAddressHardFail"],
        help: "Exit if binding one of these addresses fails.",
      },
      {
        name: "profiling",
        type: type.boolean,
        fields: ["enableProfiling"],
        help: "Serve /debug/pprof at the metrics address.",
      },
      {
        name: "show-hidden-metrics-for-version",
        type: type.string,
        fields: ["showHiddenMetricsForVersion"],
        help: "<major>.<minor>. No effect: no metrics are hidden.",
      },
      {
        name: "service-metrics",
        type: type.strings,
        fields: ["serviceMetrics.namespaces"],
        document: "fairlead",
        withConfig: true,
        help: "Namespaces of the Services whose connections are exported as metrics; * for all.",
      },
      {
        name: "service-metrics-max-series",
        type: type.int32,
        fields: ["serviceMetrics.maxSeries"],
        document: "fairlead",
        withConfig: true,
        defaultText: "2000",
        help: "Maximum number of these series. Services beyond the limit are not exported.",
      },
      {
        name: "healthz-port",
        type: type.int32,
        deprecated: "--healthz-bind-address",
        help: "Port of --healthz-bind-address if that has no port. 0 disables the health server.",
      },
      {
        name: "metrics-port",
        type: type.int32,
        deprecated: "--metrics-bind-address",
        help: "Port of --metrics-bind-address if that has no port.",
      },
    ],
  },
  {
    title: "Logging",
    flags: [
      {
        name: "v",
        type: type.level,
        fields: ["logging.verbosity"],
        withConfig: true,
        help: "Log verbosity, from 0 (quiet) to 5 (everything).",
      },
      {
        name: "logging-format",
        type: type.string,
        fields: ["logging.format"],
        withConfig: true,
        defaultText: "text",
        help: "Log format: text or json.",
      },
      {
        name: "log-flush-frequency",
        type: type.duration,
        fields: ["logging.flushFrequency"],
        withConfig: true,
        defaultText: "5s",
        help: "No effect: each line is written at once.",
      },
      {
        name: "vmodule",
        type: type.vmodule,
        fields: ["logging.vmodule"],
        withConfig: true,
        help: "Verbosity per source file. No effect: all files have the same verbosity. Only valid with the text format.",
      },
      {
        name: "log-text-split-stream",
        type: type.boolean,
        fields: ["logging.options.text.splitStream"],
        withConfig: true,
        help: "No effect: each line is written at once. Needs the feature gate LoggingAlphaOptions.",
      },
      {
        name: "log-text-info-buffer-size",
        type: type.quantity,
        fields: ["logging.options.text.infoBufferSize"],
        withConfig: true,
        help: "No effect: each line is written at once. Needs the feature gate LoggingAlphaOptions.",
      },
      {
        name: "log-json-split-stream",
        type: type.boolean,
        fields: ["logging.options.json.splitStream"],
        withConfig: true,
        help: "No effect: each line is written at once. Needs the feature gate LoggingAlphaOptions.",
      },
      {
        name: "log-json-info-buffer-size",
        type: type.quantity,
        fields: ["logging.options.json.infoBufferSize"],
        withConfig: true,
        help: "No effect: each line is written at once. Needs the feature gate LoggingAlphaOptions.",
      },
    ],
  },
  {
    title: "One-time actions",
    flags: [
      {
        name: "cleanup",
        type: type.boolean,
        withConfig: true,
        help: "Remove all rules and other kernel objects of Fairlead and kube-proxy, and exit.",
      },
      {
        name: "init-only",
        type: type.boolean,
        withConfig: true,
        help: "Do what needs full root privileges, and exit.",
      },
      {
        name: "write-config-to",
        type: type.string,
        withConfig: true,
        help: "Write the configuration with its defaults to this file, and exit.",
      },
      { name: "version", type: type.version, withConfig: true, help: "Print the version, and exit." },
    ],
  },
  {
    title: "Windows",
    flags: [
      { name: "windows-service", type: type.boolean, windows: true, help: "" },
      { name: "source-vip", type: type.string, windows: true, help: "" },
      { name: "network-name", type: type.string, windows: true, help: "" },
      { name: "enable-dsr", type: type.boolean, windows: true, help: "" },
      { name: "root-hnsendpoint-name", type: type.string, windows: true, help: "" },
      { name: "forward-healthcheck-vip", type: type.boolean, windows: true, help: "" },
    ],
  },
];
