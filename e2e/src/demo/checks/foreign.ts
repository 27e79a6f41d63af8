import { clientA, ovnClient } from "@fairlead/testkit";
import { every, senders, tally } from "../counted.ts";
import { NGINX_CALICO_IP, NGINX_OVN_IP } from "../services.ts";
import type { Check } from "../stage.ts";

/** The other network's service: not a rule names it, and its packets go out as they came in. */
export const foreignService: Check = async (stage) => {
  const rules = await stage.rules();
  const naming = (address: string) => rules.filter((rule) => rule.includes(address)).length;
  const own = naming(NGINX_CALICO_IP);
  const foreign = naming(NGINX_OVN_IP);
  const grep = {
    name: "nginx-ovn",
    request: `rules that name ${NGINX_OVN_IP}`,
    seen: `${foreign} of ${rules.length} (${own} name ${NGINX_CALICO_IP})`,
    ok: foreign === 0 && own > 0,
  };
  const traffic = [ovnClient, clientA].map(async (from) => {
    const replies = await stage.ask({ from, to: NGINX_OVN_IP, port: 80, count: 5 });
    const untouched = every(replies, "untouched") && senders(replies).join() === from.addresses.IPv4;
    const seen = untouched ? `leaves the node as sent, from ${from.addresses.IPv4}` : tally(replies);
    return { name: "nginx-ovn", request: `${from.name} → ${NGINX_OVN_IP}:80`, seen, ok: untouched };
  });
  return [grep, ...(await Promise.all(traffic))];
};
