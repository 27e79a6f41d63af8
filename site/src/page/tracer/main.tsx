import { render } from "preact";
import { Tracer } from "./tracer.tsx";

const place = document.getElementById("tracer");
if (place !== null) render(<Tracer />, place);
