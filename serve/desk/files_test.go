package desk

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/job"
)

// TestManyFiles: the two files that purl.org has of a domain are read as one upload, also if all of a file stands in one line.
func TestManyFiles(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "purl", Prefix: "https://purl.org/x/", Owner: "olga"}))(t)
	b := s.as("admin")
	b.get("/.desk/many").has(200, `type="file" multiple="multiple"`)

	history := `{"history":[{"name":"/x/gone","type":"302","target":"https://example.org/gone","status":0,"modtime":"2009-07-22 19:11:39","user":"ann"}]}`
	var purls []string
	for i := range 60 {
		purls = append(purls, fmt.Sprintf(`{"type":"302","target":"https://example.org/%d","name":"/x/n%02d"}`, i, i))
	}
	purls[7] = `{"type":"302","target":"gopher://example.org/7","name":"/x/n07"}`
	domain := `{"name":"/x","purls":[` + strings.Join(purls, ",") + `]}`

	for _, system := range []string{"purl.org", "auto"} {
		path := b.sendFiles(url.Values{"system": {system}}, `C:\purls\purl_x_purl_history.json`, history, "purl_x_purl.json", domain).leads("/.desk/many/").location()
		p := b.get(path).has(200, "61 rows", "purl_x_purl_history.json, purl_x_purl.json", "https://purl.org/x/gone", "https://purl.org/x/n00", "stele import --from "+system+" --dry-run FILE...")
		if strings.Contains(p.main(), "https://purl.org/x/n59") {
			t.Error("the first page has rows of the second")
		}
		b.get(path+"?after=50").has(200, "https://purl.org/x/n59")
		rejects := b.get(path+"/rejects").has(200, "gopher://example.org/7")
		if got := rejects.Header.Get("Content-Disposition"); !strings.Contains(got, `filename=purl_x_purl_history.json-rejects.txt`) {
			t.Errorf("got %q", got)
		}

		// Two files are not a sheet.
		b.post(path, url.Values{"do": {"columns"}, "system": {""}}).has(422, "several files are read together only if they come from another system")
		b.get(path).has(200, "61 rows")
		if system == "purl.org" {
			b.post(path, url.Values{"do": {"discard"}})
			continue
		}
		started := b.write(path, "good").leads("/.desk/jobs/")
		b.awaitJob(started.location()).has(200, "61 of 61", "done")
		b.once = true // the reason of a withdrawal is in English
		b.get("/.desk/record?id="+url.QueryEscape("https://purl.org/x/gone")).has(200, "withdrawn")
		b.get("/.desk/record?id="+url.QueryEscape("https://purl.org/x/n59")).has(200, "https://example.org/59")
		if p := b.get(started.location()+"/rejects").has(200, "gopher://example.org/7"); strings.Contains(p.text, "https://example.org/") {
			t.Errorf("the rejects have rows that were written:\n%s", p.text)
		}
	}
}

// TestManyFilesHandle: the dumps and the log of a Handle server are one upload, in whichever order a browser sends them.
func TestManyFilesHandle(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("admin")
	var files []string
	for _, name := range []string{"dbtxns.log", "handles.dump", "nas.dump"} {
		files = append(files, name, string(must(os.ReadFile("../../bulk/foreign/testdata/"+name))(t)))
	}
	path := b.sendFiles(url.Values{"system": {"handle"}}, files...).leads("/.desk/many/").location()
	b.get(path).has(200, "the prefix 20.500.99999/ has no namespace here") // nas.dump says it
	b.post(path, url.Values{"do": {"discard"}})
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "hdl", Prefix: "20.500.99999/", Owner: "olga"}))(t)
	path = b.sendFiles(url.Values{"system": {"handle"}}, files...).leads("/.desk/many/").location()
	b.get(path).has(200, "dbtxns.log, handles.dump, nas.dump", "1 row", "20.500.99999/ABC-1")
	b.awaitJob(b.write(path, "all").leads("/.desk/jobs/").location()).has(200, "1 of 1", "done")
	b.get("/.desk/record?id="+url.QueryEscape("20.500.99999/ABC-1")).has(200, "https://example.org/1")
}

// TestManyFilesRefused: what can't be one upload is refused whole, and nothing of it is kept.
func TestManyFilesRefused(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	noid := url.Values{"system": {"noid"}}
	many := make([]string, 0, 2*(job.MaxFiles+1))
	for i := range job.MaxFiles + 1 {
		many = append(many, fmt.Sprintf("%d.txt", i), fmt.Sprintf("12345/x5%d\tgoto: https://example.org/\n", i))
	}
	half := strings.Repeat("a line of 16 ...\n", job.MaxUpload/2/16)
	for _, tt := range []struct {
		name, want string
		fields     url.Values
		files      []string
	}{
		{"sheets", "several files are read together only if they come from another system", intoX5, []string{"a.csv", "url\nhttps://example.org/1\n", "b.csv", "url\nhttps://example.org/2\n"}},
		{"too many", "there are more than 16 files", noid, many},
		{"one name", "two files are called a.txt; rename one of them", noid, []string{"a.txt", "12345/x5a1\tgoto: https://example.org/1\n", `C:\other\a.txt`, "12345/x5a2\tgoto: https://example.org/2\n"}},
		{"compressed", "the file is compressed", noid, []string{"a.txt", "12345/x5a1\tgoto: https://example.org/1\n", "b.gz", "\x1f\x8b\x08"}},
		{"too large together", "the file has more than 16777216 bytes", noid, []string{"a.txt", half, "b.txt", half}},
		{"empty", "there is nothing in it", noid, []string{"a.txt", "", "b.txt", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.sendFiles(tt.fields, tt.files...).has(422, tt.want)
			if p := b.get("/.desk/many").has(200); strings.Contains(p.main(), `href="/.desk/many/`) {
				t.Error("an upload was kept")
			}
		})
	}

	// The form ends in the head of its second file.
	const cut = "--b\r\nContent-Disposition: form-data; name=\"system\"\r\n\r\nnoid\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n12345/x5a1\tgoto: https://example.org/1\n\r\n--b\r\nContent-Disp"
	r := must(http.NewRequest("POST", b.url+"/.desk/many", strings.NewReader(cut)))(t)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	b.do(r).has(422, "the file did not arrive whole")

	path := b.sendFiles(noid, many[:2*job.MaxFiles]...).leads("/.desk/many/").location()
	b.get(path).has(200, "16 rows")
}
