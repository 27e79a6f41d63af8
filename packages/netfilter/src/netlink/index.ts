export { attribute, nest } from "./parts.ts";
export { Attributes } from "./reader.ts";
export { aligned, attributesIn, findAttribute, type Range } from "./walk.ts";
export { AttributeWriter } from "./writer.ts";
