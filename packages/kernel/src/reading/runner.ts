import type { Argv, Runner } from "../runner/runner.ts";

/** Programs that only print, as they are called here; `iptables-save` takes no lock and counts nothing. */
const READS: readonly (readonly string[])[] = [
  ...["iptables", "ip6tables"].flatMap((tool) => ["nft", "legacy"].map((variant) => [`${tool}-${variant}-save`])),
  ...["iptables", "ip6tables"].map((tool) => [`${tool}-nft-save`, "-t", "mangle"]),
  ["ip", "-json", "address"],
  ["ip", "-oneline", "monitor", "address"],
  ["ip", "-oneline", "monitor", "link", "address"],
  ["ipset", "save"],
];

/**
 * The same runner, which starts nothing but programs that only print.
 *
 * @throws Error when it is asked to start another one
 */
export function readingRunner(runner: Runner): Runner {
  const checked = (argv: Argv) => {
    if (READS.some((known) => known.length === argv.length && known.every((word, at) => argv[at] === word)))
      return argv;
    throw new Error(`${argv.join(" ")}: may change the kernel; only reads are allowed here`);
  };
  return {
    run: async (argv, options) => {
      const { input: _none, ...others } = options ?? {};
      return runner.run(checked(argv), others);
    },
    stream: (argv, options) => runner.stream(checked(argv), options),
  };
}
