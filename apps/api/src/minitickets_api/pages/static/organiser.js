// The organiser's forms: what a plain form cannot know before it is sent.

const zone = document.getElementById("timeZone");
if (zone && !zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;

// S3 takes a form for two minutes, and says no in its own words: look before, and take a fresh form at the last moment.
const upload = document.querySelector("form[data-upload]");
if (upload) {
  const file = upload.querySelector("input[type=file]");
  const problem = document.getElementById("file-problem");

  function tell(text) {
    problem.textContent = text;
    problem.hidden = !text;
    file.toggleAttribute("aria-invalid", Boolean(text));
    if (text) file.setAttribute("aria-invalid", "true");
  }

  function wrong(chosen) {
    if (!chosen) return "";
    if (chosen.size === 0) return "This file is empty. Choose another one.";
    if (chosen.size > Number(upload.dataset.most)) return "This file is larger than 5 MB. Make it smaller, or choose another one.";
    // Some systems know no type of a file; the check after the upload does.
    if (chosen.type && !file.accept.split(",").includes(chosen.type)) return "This is no PNG, JPEG or WebP. Choose another file.";
    return "";
  }

  async function refresh() {
    const reply = await fetch(location.pathname.replace(/(\/poster)\/.*/, "$1"), { cache: "no-store", signal: AbortSignal.timeout(10000) });
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").querySelector("form[data-upload]");
    if (!fresh) throw new Error("no form");
    upload.action = fresh.getAttribute("action");
    for (const field of upload.querySelectorAll("input[type=hidden]")) {
      field.value = fresh.querySelector(`input[name="${CSS.escape(field.name)}"]`).value;
    }
  }

  file.addEventListener("change", () => tell(wrong(file.files[0])));
  upload.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = wrong(file.files[0]);
    tell(told);
    if (told) {
      file.focus();
      return;
    }
    const button = upload.querySelector("button");
    button.disabled = true;
    button.textContent = "Uploading…";
    try {
      await refresh();
      upload.submit();
    } catch {
      tell("The upload cannot begin: is there a network, and are you still logged in? Try again.");
      button.disabled = false;
      button.textContent = "Upload";
    }
  });
  // Back from the history: nothing is being uploaded.
  addEventListener("pageshow", (event) => {
    if (event.persisted) upload.querySelector("button").textContent = "Upload";
  });
}

// The second step needs nothing of a person. Before the page has loaded, so that Back leads past it.
document.querySelector("form[data-send-now]")?.requestSubmit();
