/**
 * The layers of docs/architecture.md, which a test compares with tooling/layers.json. Data goes one way: watch → core → endpoint-filter → backend → kernel, and the
 * apps wire them. A rule here is an arrow that must not exist.
 */
const layers = require("./tooling/layers.json");

/** The test ground stands alongside the packages: the lab below, specs and benchmarks on it. */
const GROUND = ["lab", "e2e", "bench"];

const room = (name) => (GROUND.includes(name) ? `^${name}/` : `^packages/${name}/`);
const others = (...allowed) => `^(packages/(?!(${allowed.join("|")})/)|(apps|${GROUND.join("|")})/)`;
const sources = (name) => ({ path: `${room(name)}src/`, pathNot: "\\.test\\.ts$" });

/** @param {string} name @param {string[]} may rooms that its sources may import, in addition to itself */
const layer = (name, ...may) => ({
  name: `layer-${name}`,
  comment: `${name} imports ${may.length === 0 ? "no other room" : may.join(", ")}`,
  severity: "error",
  from: sources(name),
  to: { path: others(name, ...may), pathNot: room(name) },
});

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([name, may]) => layer(name, ...may)),
    {
      name: "pure-planning",
      comment: "Planning is pure: no Node API in core, the endpoint filter, the networks or a backend's plan folder",
      severity: "error",
      from: {
        path: "^packages/(core/src|endpoint-filter/src|networks/src|backend-[^/]+/src/plan)/",
        pathNot: "\\.test\\.ts$",
      },
      // hashing is a function of its input
      to: { dependencyTypes: ["core"], pathNot: "^crypto$" },
    },
    {
      name: "plan-does-not-act",
      comment: "What decides knows nothing of what acts",
      severity: "error",
      from: { path: "^packages/backend-[^/]+/src/plan/" },
      to: { path: "^packages/(backend-[^/]+/src/(?!plan/)|kernel/)" },
    },
    {
      name: "watch-writes-nothing",
      comment: "fairlead verify --watch has a reader of the kernel: no backend, nothing that changes a cluster",
      severity: "error",
      from: {
        path: "^(apps/cli/src/commands/verify/watch/|packages/inspect/src/compare/(group-differences|difference-tracker|strays)\\.ts)",
      },
      to: { path: "^(packages/backend-[^/]+/|apps/cli/src/(migrate|commands/migrate)/)" },
    },
    {
      name: "ground-of-two-floors",
      comment: "Specs and benchmarks stand on the lab, not on each other",
      severity: "error",
      from: { path: "^(e2e|bench)/" },
      to: { path: "^(e2e|bench)/", pathNot: "^$1/" },
    },
    {
      name: "one-importer-of-execa",
      comment: "Processes are started by the runner of @fairlead/kernel (and by the private test ground)",
      severity: "error",
      from: { pathNot: [room("kernel"), "^(lab|e2e)/"] },
      to: { path: "node_modules/execa" },
    },
    {
      name: "one-importer-of-the-kubernetes-client",
      comment: "The tool asks an auth-provider by it; the agent has no use for it. Tests compare with it",
      severity: "error",
      from: { pathNot: "^apps/cli/|^packages/watch/test/" },
      to: { path: "node_modules/@kubernetes/client-node" },
    },
    {
      name: "apps-are-leaves",
      comment: "Nothing imports an app; only the lab builds images as releases do",
      severity: "error",
      from: { path: "^(packages|lab|e2e|bench)/" },
      to: { path: "^(apps|deploy/(?!src/image/))" },
    },
    {
      name: "images-are-leaves",
      severity: "error",
      from: { path: "^(packages|e2e|bench)/" },
      to: { path: "^deploy/" },
    },
    {
      name: "by-name-not-by-path",
      comment: "Packages meet through their exports; a relative path into another room goes around them",
      severity: "error",
      from: { path: "^(packages|apps)/([^/]+)/", pathNot: "\\.(test|bench)\\.ts$|/(test|bench)/" },
      to: { path: "^(packages|apps)/([^/]+)/", pathNot: "^$1/$2/", dependencyTypes: ["local"] },
    },
    {
      name: "no-cycles",
      comment: "Type-only imports make circles, too",
      severity: "error",
      from: { pathNot: "^tooling/" },
      to: { circular: true },
    },
    {
      name: "no-folder-cycles",
      comment: "Between folders of a package imports go one way, type-only ones too: none runs back up",
      severity: "error",
      scope: "folder",
      from: {},
      to: { circular: true },
    },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)dist/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tooling/tsconfig.base.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@fairlead/source", "types", "import", "node", "default"],
      extensions: [".ts", ".tsx", ".js", ".mjs", ".cjs", ".json"],
    },
  },
};
