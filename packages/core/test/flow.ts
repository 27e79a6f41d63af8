import type { ConntrackFlow } from "../src/index.ts";

/** `udp 10.96.0.10:53 <- 10.144.1.5:8080`, to where the client sent and from where the answer comes. */
export function flow(text: string): ConntrackFlow & { readonly text: string } {
  const [protocol = "", to = "", , from = ""] = text.split(" ");
  const [originalDestination = "", originalPort] = to.split(":");
  const [replySource = "", replyPort] = from.split(":");
  const ports = { originalPort: Number(originalPort), replyPort: Number(replyPort) };
  return { text, family: "IPv4", protocol, originalDestination, replySource, ...ports };
}
