import { goldenScenario } from "@fairlead/testkit";

export const { iptables } = goldenScenario("10-lb-source-ranges");

interface Told {
  readonly outcomes: readonly {
    readonly verdict: string;
    readonly probability: number;
    readonly masqueraded: boolean;
    readonly destination: { readonly address: string; readonly port: number };
  }[];
}

export function ends(out: string): string[] {
  const { outcomes }: Told = JSON.parse(out);
  return outcomes.map(
    ({ verdict, probability, masqueraded, destination: { address, port } }) =>
      `${verdict} ${address}:${port} ${probability}${masqueraded ? " masqueraded" : ""}`,
  );
}
