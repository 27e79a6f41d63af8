/** What `ip -json address` prints on node-a. */
export const addresses = JSON.stringify([
  {
    ifname: "eth0",
    flags: ["UP"],
    addr_info: [{ family: "inet", local: "10.201.0.10", prefixlen: 24, scope: "global" }],
  },
]);
