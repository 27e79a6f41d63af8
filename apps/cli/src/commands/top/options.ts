import { connectionOptions } from "../flows/options.ts";

export const topOptions = connectionOptions;
