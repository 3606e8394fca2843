// Writes what citeproc-js, the reference implementation of the Citation Style Language, makes
// of the items in citations.json. The test of citations holds ours against it; it needs
// neither Node nor a network. To make the file again:
//
//	go test ./serve/httpd/describe -run TestCitationTable -update
//	npm install citeproc@2.4.63
//	node serve/httpd/describe/testdata/citations.mjs STYLES serve/httpd/describe/testdata/citations.json
//
// STYLES is a folder with styles/apa.csl, styles/ieee.csl and locales/locales-en-US.xml, such
// as /usr/share/citation-style-language of Debian's citation-style-language-styles
// (0~20230209) and citation-style-language-locales (0~20230122).
import fs from 'node:fs';
import { createRequire } from 'node:module';

const CSL = createRequire(process.cwd() + '/')('citeproc');
const [folder, file] = process.argv.slice(2);
const locale = fs.readFileSync(folder + '/locales/locales-en-US.xml', 'utf8');
const rows = JSON.parse(fs.readFileSync(file, 'utf8'));
for (const style of ['apa', 'ieee']) {
  const sheet = fs.readFileSync(`${folder}/styles/${style}.csl`, 'utf8');
  for (const row of rows) {
    const item = { ...row.csl, id: 'x' };
    const engine = new CSL.Engine({ retrieveLocale: () => locale, retrieveItem: () => item }, sheet, 'en-US');
    engine.setOutputFormat('text');
    engine.updateItems(['x']);
    row[style] = engine.makeBibliography()[1].join('').trim().replace(/\s+/g, ' ');
  }
}
fs.writeFileSync(file, JSON.stringify(rows, null, 1) + '\n');
