import type { LabOptions } from "@fairlead/lab/plain/lab";
import type { ConformanceCase } from "@fairlead/testkit";

/** Where the lab has to listen so that whatever a packet of these rows reaches gives an answer. */
export function portsOf(rows: readonly ConformanceCase[]): LabOptions {
  const landing = (protocol: "TCP" | "UDP") =>
    rows.filter(({ packet }) => packet.protocol === protocol).map(({ packet }) => packet.port);
  const pods = [53, 80, 8080, 9090];
  return {
    podPorts: { tcp: pods, udp: pods },
    // 6443: where default/kubernetes leads.
    landingPorts: { tcp: unique([8080, 6443, ...landing("TCP")]), udp: unique([8080, ...landing("UDP")]) },
  };
}

/** What either of them has. */
export function bothPorts(one: LabOptions, other: LabOptions): LabOptions {
  const both = (ports: keyof LabOptions) => ({
    tcp: unique([...one[ports].tcp, ...other[ports].tcp]),
    udp: unique([...one[ports].udp, ...other[ports].udp]),
  });
  return { podPorts: both("podPorts"), landingPorts: both("landingPorts") };
}

function unique(ports: readonly number[]): readonly number[] {
  return [...new Set(ports)];
}
