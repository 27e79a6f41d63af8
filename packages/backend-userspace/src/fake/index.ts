export { FakeSockets } from "./fake-sockets.ts";
