package desk

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk/foreign"
)

// noidSheet is what 'noid dbinfo dump' prints of a minter's two names, and of one that can't be imported.
const noidSheet = "12345/x5a1\t:/c: i|20200102030405|me/here|1\n" +
	"12345/x5a1\tgoto: https://example.org/1\n" +
	"12345/x5a1\twhat: Mapa do Pará\n" +
	"12345/x5a2\tgoto: gopher://example.org/2\n" +
	"12345/x5a3\tgoto: https://example.org/3\n" +
	"12345/x5a3\t__mp: all\n"

// TestManyForeign: a file of another system is previewed, written and undone as a sheet is, without the rights
// that it grants there, and what can't be used goes back in the system's own form.
func TestManyForeign(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	b.get("/.desk/many").has(200, "The file comes from another system", `<option value="noid">`)
	for _, system := range []string{"auto", "noid"} {
		path := b.send("noid.txt", noidSheet, url.Values{"system": {system}}).leads("/.desk/many/").location()
		b.get(path).has(200, "3 rows", "The file comes from Noid, Nog or egg.", "ark:12345/x5a1", "Mapa do Pará", "Write the 2 good rows", "stele import --from "+system+" --dry-run FILE",
			"Not in the rows below", "1 values that grant rights or are secrets are left out")
		rejects := b.get(path+"/rejects").has(200, "# line 4:", "12345/x5a2\tgoto: gopher://example.org/2")
		if got := rejects.Header.Get("Content-Disposition"); !strings.Contains(got, "noid.txt-rejects.txt") {
			t.Errorf("got %q", got)
		}
		if system == "auto" {
			b.post(path, url.Values{"do": {"discard"}})
			continue
		}
		started := b.write(path, "good").leads("/.desk/jobs/")
		b.awaitJob(started.location()).has(200, "3 of 3", "done")
		b.get("/.desk/record?id=ark:12345/x5a1").has(200, "Mapa do Pará", "https://example.org/1")
		b.get(started.location()+"/rejects").has(200, "12345/x5a2\tgoto:")
		b.get(started.location()+"/result.csv").has(200, "1,ark:12345/x5a1,new")
		undone := b.post(started.location()+"/undo", nil).leads("/.desk/jobs/")
		b.awaitJob(undone.location()).has(200, "2 of 2")
		b.get("/.desk/record?id=ark:12345/x5a1").has(200, "withdrawn")
	}

	// Names that are not complete need what stands before them; the preview asks for it.
	path := b.send("noid.txt", "7\tgoto: https://example.org/7\n", url.Values{"system": {"noid"}}).leads("/.desk/many/").location()
	b.get(path).has(200, "say what stands before it")
	b.post(path, url.Values{"do": {"columns"}, "system": {"noid"}, "prefix": {"ark:12345/x5"}}).leads(path)
	b.get(path).has(200, "ark:12345/x57", "Write 1 row", "--prefix &#39;ark:12345/x5&#39;")

	// A system that there is not is a sheet, and a sheet is not a file of a system.
	path = b.send("a.csv", "url,title\nhttps://example.org/1,One\n", url.Values{"system": {"frob"}, "namespace": {"ark:12345/x5"}}).leads("/.desk/many/").location()
	b.get(path).has(200, "UTF-8, commas")
	path = b.send("a.csv", "\x00\x01", url.Values{"system": {"auto"}}).leads("/.desk/many/").location()
	b.get(path).has(422, "does not begin as a file of a system that is known")
}

// TestSystemNames: pages name every system, in both languages.
func TestSystemNames(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	b.translated(func() page {
		p := b.get("/.desk/many").has(200)
		for _, system := range foreign.Systems() {
			if name := "system." + strings.ReplaceAll(system.Name, ".", "-"); strings.Contains(p.text, name) {
				t.Errorf("%s has no name", system.Name)
			}
		}
		return p
	})
}
