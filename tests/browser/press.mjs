// Opens a page in Chromium as a person would, presses its button twice, and prints what was seen as JSON.
//   node press.mjs PAGE FOLDER    (the file that the page gives, and a picture of the page, go to FOLDER)
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [address, folder] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  headless: "shell",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
});
const seen = { complaints: [] };
try {
  const downloads = await browser.target().createCDPSession();
  await downloads.send("Browser.setDownloadBehavior", {
    behavior: "allow",
    downloadPath: folder,
    eventsEnabled: true,
  });
  const page = await browser.newPage();
  page.on("console", (message) => seen.complaints.push(message.text()));
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  const text = () => page.$eval("body", (body) => body.innerText);

  await page.goto(address);
  seen.title = await page.title();
  seen.text = await text();
  await page.screenshot({ path: `${folder}/page.png` });

  const completed = new Promise((resolve) => {
    downloads.on("Browser.downloadWillBegin", (event) => (seen.file = event.suggestedFilename));
    downloads.on("Browser.downloadProgress", (event) => event.state === "completed" && resolve());
  });
  await page.click("button");
  await completed;
  seen.afterwards = await text();

  // The answer to the second press is an error, which the console tells: that is no complaint of the page's.
  seen.complaintsAtFirst = seen.complaints.length;
  await Promise.all([page.waitForNavigation(), page.click("button")]);
  seen.again = await text();
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
