// A landscape in three dimensions: a lit surface with level lines over its map, drawn by WebGL 2 for all pictures in turn.
// Heights, camera, light and proportions are those of the project's other reliefs (`figures.axes.relief`).

const VERTEX = `#version 300 es
in vec3 place; in vec3 normal;
uniform vec3 right, up, forward; uniform vec2 scale; uniform float floorAt; uniform bool flat_;
out float height; out vec3 facing;
void main() {
  height = place.z; facing = normal;
  vec3 at = vec3(place.xy, flat_ ? floorAt : place.z);
  gl_Position = vec4(dot(at, right) * scale.x, dot(at, up) * scale.y, dot(at, forward) * 0.2, 1.0);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in float height; in vec3 facing;
uniform sampler2D colours; uniform float base, top, count; uniform vec3 light, paper; uniform bool flat_;
out vec4 colour;
void main() {
  float share = (height - base) / (top - base);
  if (!(share <= 1.001)) discard;
  vec3 paint = texture(colours, vec2(clamp(share, 0.002, 0.998), 0.5)).rgb;
  float level = share * count - 0.5, away = abs(fract(level - 0.5) - 0.5) / max(fwidth(level), 1e-5);
  float line = 1.0 - smoothstep(0.4, 1.3, away);
  if (flat_) { colour = vec4(mix(mix(paint, paper, 0.3), vec3(1.0), 0.35 * line), 1.0); return; }
  float bright = max(dot(normalize(facing), light), 0.0);
  vec3 lit = paint * (0.5 + 0.62 * bright) + vec3(0.16) * pow(bright, 24.0);
  colour = vec4(mix(lit, lit * 0.45, 0.55 * line), 1.0);
}`;

const towards = (azimuth, elevation) => {
  const [turn, lean] = [azimuth, elevation].map((degrees) => (degrees * Math.PI) / 180);
  return [Math.cos(turn) * Math.cos(lean), Math.sin(turn) * Math.cos(lean), Math.sin(lean)];
};

// The camera: far away, so that parallel lines stay parallel. Places are in units of the map's side, heights in [floor, tall].
class Camera {
  constructor(look) { this.look = look; this.reset(); }
  reset() { this.turnTo(null); }

  // turn: azimuth and elevation, degrees; null: as at first.
  turnTo(turn) { [this.azimuth, this.elevation] = turn || [this.look.azimuth, this.look.elevation]; }

  turn(right, up) {
    this.azimuth = ((this.azimuth - right + 540) % 360) - 180;
    this.elevation = Math.min(88, Math.max(12, this.elevation + up));
  }

  get axes() {
    const { azimuth, elevation } = this;
    return { right: towards(azimuth + 90, 0), up: towards(azimuth, elevation + 90), forward: towards(azimuth, elevation).map((part) => -part) };
  }

  // Height in the scene, -tall / 2 (the map below) to tall / 2, of a share of the levels.
  rise(share) {
    const { tall, drop } = this.look;
    return ((share + drop) / (1 + drop) - 0.5) * tall;
  }

  // Where a place (-0.5 to 0.5 along both axes, height in the scene) is seen, -1 to 1 to the right and up.
  seen([x, y, z]) {
    const { right, up } = this.axes, along = (axis) => axis[0] * x + axis[1] * y + axis[2] * z;
    return [along(right) * ZOOM, (along(up) + 0.02) * ZOOM];
  }
}
const ZOOM = 1.2;

class ReliefPainter {
  constructor() {
    this.canvas = document.createElement("canvas");
    const gl = this.canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true, preserveDrawingBuffer: true });
    this.gl = gl;
    if (!gl) return;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.at = (name) => gl.getUniformLocation(program, name);
    for (const [name, size, offset] of [["place", 3, 0], ["normal", 3, 12]]) {
      const place = gl.getAttribLocation(program, name);
      if (name === "place") gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 24, offset);
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.enable(gl.DEPTH_TEST);
  }

  // fine: heights [v][u] over the rectangle `box` (u, v, both in -0.5..0.5); scale: {low, high, count, table}.
  paint(target, fine, box, scale, camera) {
    const { gl } = this, size = target.width;
    if (this.canvas.width !== size) this.canvas.width = this.canvas.height = size;
    gl.viewport(0, 0, size, size);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const { vertices, indices } = this.mesh(fine, box, scale, camera);
    gl.bufferData(gl.ARRAY_BUFFER, vertices, gl.DYNAMIC_DRAW);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.DYNAMIC_DRAW);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, scale.table);
    for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.LINEAR);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    for (const [name, axis] of Object.entries(camera.axes)) gl.uniform3fv(this.at(name), axis);
    gl.uniform2f(this.at("scale"), ZOOM, ZOOM);
    gl.uniform1f(this.at("floorAt"), camera.rise(-camera.look.drop));
    gl.uniform1f(this.at("base"), camera.rise(0));
    gl.uniform1f(this.at("top"), camera.rise(1));
    gl.uniform1f(this.at("count"), scale.count);
    gl.uniform3fv(this.at("light"), towards(...camera.look.light));
    gl.uniform3fv(this.at("paper"), getComputedStyle(target).getPropertyValue("--paper").match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16) / 255));
    for (const flat of [1, 0]) {
      gl.uniform1i(this.at("flat_"), flat);
      gl.drawElements(gl.TRIANGLES, indices.length, gl.UNSIGNED_INT, 0);
    }
    const pen = target.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0); // a map before it left its own
    pen.clearRect(0, 0, size, size);
    pen.drawImage(this.canvas, 0, 0);
  }

  // Triangles of the cells whose corners are known, with normals.
  mesh(fine, box, { low, high }, camera) {
    const vertices = new Float32Array(FINE * FINE * 6), indices = [];
    const span = high - low || 1, rise = (i) => camera.rise((fine[i] - low) / span);
    const [wide, tall] = [box.u, box.v].map(([from, to]) => (to - from) / (FINE - 1));
    for (let y = 0; y < FINE; y++) {
      for (let x = 0; x < FINE; x++) {
        const i = y * FINE + x, [left, right, below, above] = [x > 0 ? i - 1 : i, x < FINE - 1 ? i + 1 : i, y > 0 ? i - FINE : i, y < FINE - 1 ? i + FINE : i];
        const normal = [(rise(left) - rise(right)) / (wide * (right - left)), (rise(below) - rise(above)) / (tall * ((above - below) / FINE)), 1];
        const length = Math.hypot(...normal) || 1;
        vertices.set([box.u[0] + x * wide, box.v[0] + y * tall, rise(i), ...normal.map((part) => part / length)], 6 * i);
        if (x === FINE - 1 || y === FINE - 1 || [i, i + 1, i + FINE, i + FINE + 1].some((at) => Number.isNaN(fine[at]))) continue;
        if ([x, x + 1].some((at) => Math.abs(box.u[0] + at * wide) > 0.51) || [y, y + 1].some((at) => Math.abs(box.v[0] + at * tall) > 0.51)) continue; // beyond what is shown
        indices.push(i, i + 1, i + FINE, i + 1, i + FINE + 1, i + FINE);
      }
    }
    return { vertices, indices: new Uint32Array(indices) };
  }
}
