/**
 * What is used of the Kubernetes client library. The one module that loads it: it is larger than all of the program,
 * and only commands that ask a cluster import this, when they do.
 */
export {
  Exec,
  KubeConfig,
  PortForward,
} from "@kubernetes/client-node";
export { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
export { WebSocket } from "ws";
