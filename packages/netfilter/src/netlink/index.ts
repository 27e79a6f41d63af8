export {
  Attributes,
  AttributeWriter,
  aligned,
  attribute,
  attributesIn,
  findAttribute,
  nest,
  type Range,
} from "./attributes.ts";
