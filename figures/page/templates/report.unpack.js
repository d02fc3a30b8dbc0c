// Unpacks the parts of this page: gzip in base64, so that the file is a third of its size. Nothing is fetched.
async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(`packed-${name}`).textContent), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function run(name) {
  const script = document.createElement("script");
  script.textContent = await unpacked(name);
  document.body.append(script);
}
function tell(words) { document.getElementById("stage").append(Object.assign(document.createElement("p"), { role: "alert", textContent: words })); }

// The stage first; the curves below it need plotly, which takes longer. Done when all can be used.
window.unpacking = (async () => {
  const root = document.getElementById("stage");
  if (!window.DecompressionStream) { tell("This browser is too old to unpack the figures of this page: Chrome 80, Firefox 113 or Safari 16.4 can. The tables below can be read."); return; }
  try {
    await run("stage");
    root.view = stage(root, JSON.parse(await unpacked("scene")));
    if (!document.getElementById("packed-figures")) return; // the stage alone
    window.figures = JSON.parse(await unpacked("figures"));
    await run("plotly");
    await run("page");
  } catch (reason) {
    tell(`The figures of this page cannot be shown (${reason.message}). Is the file whole? fedscape publish writes it again.`);
    throw reason;
  }
})();
