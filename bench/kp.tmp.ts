import { kubeProxyProgram } from "./src/proxy/kube-proxy-program.ts";

console.log(await kubeProxyProgram("v1.37.1", (l) => console.log(l)));
