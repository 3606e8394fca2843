package desk

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/job"
)

// runJobs works on jobs until the test ends.
func (s *site) runJobs() {
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	runner := &job.Runner{Board: s.jobs, Directory: s.users, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil))}
	go func() { defer close(done); runner.Run(ctx) }()
	s.t.Cleanup(func() { stop(); <-done })
}

// send sends a file, and returns the path of its preview.
func (b *browser) send(name, text string, fields url.Values) page {
	b.t.Helper()
	return b.sendFiles(fields, name, text)
}

// sendFiles sends files, each by its name and its text.
func (b *browser) sendFiles(fields url.Values, files ...string) page {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for field := range fields {
		if err := w.WriteField(field, fields.Get(field)); err != nil {
			b.t.Fatal(err)
		}
	}
	for i := 0; i < len(files); i += 2 {
		part := must(w.CreateFormFile("file", files[i]))(b.t)
		if _, err := part.Write([]byte(files[i+1])); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	r := must(http.NewRequest("POST", b.url+"/.desk/many", &body))(b.t)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r)
}

// write starts the job of a preview, with the form as the page has it.
func (b *browser) write(path, do string) page {
	b.t.Helper()
	form := b.get(path).fields(strings.TrimPrefix(path, "/.desk/"))
	form.Set("do", do)
	return b.post(path, form)
}

func (p page) location() string {
	path, _, _ := strings.Cut(p.Header.Get("Location"), "?")
	return path
}

// awaitJob reads the page of a job until it has ended.
func (b *browser) awaitJob(path string) page {
	b.t.Helper()
	for {
		if p := b.get(path).has(200); !strings.Contains(p.text, "refresh") {
			return p
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var intoX5 = url.Values{"namespace": {"ark:12345/x5"}, "update": {"yes"}}

func TestMany(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	own := b.make(url.Values{"own": {"ark:12345/x5old"}, "target.0.url": {"https://example.org/old"}, "what": {"Old"}})
	b.get("/.desk/many").has(200, "Maps of Pará", "Look first", `type="file"`)
	const sheet = "sep=;\r\nPID;Link;Title;Shelf mark;\r\n;https://example.org/1;Mapa do Pará;B 1;\r\nark:12345/x5old;https://example.org/new;Old;;\r\n;htps://example.org/3;Wrong;;;\r\n;;;;\r\n;https://drive.example.net/4;\"A; b\"\"c\";;\r\n"
	coded := strings.NewReplacer("á", "\xe1").Replace(sheet)
	path := b.send(`C:\maps\scans.csv`, coded, intoX5).leads("/.desk/many/").location()
	b.get(path).has(200, "4 rows", "scans.csv", "Latin-1, semicolons", "1 line has characters", "Mapa do Pará", "will be made", "keep as “shelf-mark”", "Write the 2 good rows", "https://example.org/new", "A; b&#34;c")
	b.get(path+"?kind=refused").has(200, "does not begin with a protocol")
	if p := b.get(path + "?kind=new").has(200); strings.Contains(p.main(), "A; b") {
		t.Error("a refused row is among the new ones")
	}
	rejects := b.get(path+"/rejects").has(200, "PID;Link;Title;Shelf mark;\r\n# line 5:", ";htps://example.org/3;Wrong;;;\r\n", "# line 7:")
	if got := rejects.Header.Get("Content-Disposition"); !strings.Contains(got, "scans-rejects.csv") {
		t.Errorf("got %q", got)
	}
	b.write(path, "all").has(409, "2 rows can&#39;t be used")

	// Nobody else sees the file.
	s.as("olga").get(path).has(404)
	s.as("admin").get(path).has(404)

	started := b.write(path, "good").leads("/.desk/jobs/")
	b.post(path, url.Values{"do": {"good"}}).has(404) // another tab
	done := b.awaitJob(started.location()).has(200, "4 of 4", "done", "Result as a file", "Undo it")
	_ = done
	result := b.get(started.location()+"/result.csv").has(200, "row,id,result,PID,Link", "3,ark:12345/x5", "new", "ark:12345/x5old,changed", `5,,"refused: `)
	name := strings.Split(strings.Split(result.text, "\n")[1], ",")[1]
	b.get("/.desk/record?id="+url.QueryEscape(name)).has(200, "Mapa do Pará", "https://example.org/1", "B 1")
	b.get(own).has(200, "https://example.org/new")
	b.get(started.location()+"/rejects").has(200, "# line 5:", ";htps://example.org/3;Wrong;;;")
	b.get("/.desk/jobs").has(200, "Write scans.csv", "done")
	s.as("olga").get(started.location()).has(404)
	s.as("admin").get(started.location()).has(200, "ed")

	// Undo, with a preview; a record that was changed since is left.
	b.get(started.location()+"/undo").has(200, "1 name gets its former content", "1 name is withdrawn", "0 names are left")
	undone := b.post(started.location()+"/undo", nil).leads("/.desk/jobs/")
	b.post(started.location()+"/undo", nil).has(409)
	b.awaitJob(undone.location()).has(200, "Undo scans.csv", "2 of 2")
	b.get(own).has(200, "https://example.org/old")
	b.get("/.desk/record?id="+url.QueryEscape(name)).has(200, "withdrawn")
	b.get(started.location()).has(200, "It was undone by another job")
}

// TestManyReads: what spreadsheets write, pasted or sent.
func TestManyReads(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	wide := func(text string) string {
		out := []byte{0xff, 0xfe}
		for _, c := range utf16.Encode([]rune(text)) {
			out = append(out, byte(c), byte(c>>8))
		}
		return string(out)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"lines":      {"https://example.org/1\nhttps://example.org/2\n", []string{"2 rows", "Write all 2 rows"}},
		"names":      {"ark:12345/x5a\thttps://example.org/1\tA title\n", []string{"1 row ", "ark:12345/x5a", "A title", "tabs"}},
		"bom":        {"\ufeffurl,title\nhttps://example.org/1,Pará\n", []string{"Pará", "UTF-8, commas"}},
		"utf-16":     {wide("url\ttitle\r\nhttps://example.org/1\tPará\r\n"), []string{"Pará", "UTF-16, tabs"}},
		"cp1252":     {"url;title\r\nhttps://example.org/1;\x93Par\xe1\x94\r\n", []string{"“Pará”", "Windows-1252, semicolons"}},
		"jsonl":      {`{"url":"https://example.org/1","metadata":{"what":"Pará"}}` + "\n" + `{"id":"ark:12345/x5b","url":"https://example.org/2"}`, []string{"2 rows", "Pará", "ark:12345/x5b", "Write all 2"}},
		"trailing":   {"url,title,,\nhttps://example.org/1,One\nhttps://example.org/2,Two,,\nhttps://example.org/3,Three,,,,\n", []string{"3 rows", "Write all 3"}},
		"quotes":     {"url,title\n\"https://example.org/1\",\"One\nline \"\"more\"\"\"\n", []string{"line &#34;more&#34;"}},
		"namespace":  {`{"namespace":{"scheme":"ark","prefix":"ark:12345/x5"}}`, []string{"this is a namespace"}},
		"unfinished": {"url,title\n\"https://example.org/1,One\nhttps://example.org/2,Two\n", []string{"has none at its end"}},
		"again":      {"id,url\nark:12345/x5c,https://example.org/1\nark:12345/x5c,https://example.org/1\n", []string{"1</b> <span>new", "1</b> <span>is registered so already"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.send(name+".csv", c.text, intoX5).leads("/.desk/many/")
			b.follow(p).has(200, c.want...)
			b.post(p.location(), url.Values{"do": {"discard"}}).leads("/.desk/many?done=discarded")
			b.get(p.location()).has(404)
		})
	}
	// Pasted text needs no file.
	p := b.post("/.desk/many", url.Values{"text": {"https://example.org/1\r\nhttps://example.org/2"}, "namespace": {"ark:12345/x5"}}).leads("/.desk/many/")
	b.follow(p).has(200, "pasted text", "2 rows")
	// Without a namespace each row needs a name.
	b.post(p.location(), url.Values{"do": {"columns"}, "encoding": {"auto"}, "column.0": {"url"}, "headless": {"yes"}}).leads(p.location())
	b.get(p.location()).has(422, "No column is “Name”")
	b.post(p.location(), url.Values{"do": {"columns"}, "encoding": {"auto"}, "namespace": {"ark:12345/x5"}, "column.0": {"what"}, "headless": {"yes"}}).leads(p.location())
	b.get(p.location()).has(200, "2</b> <span>new")
	b.post(p.location(), url.Values{"do": {"columns"}, "namespace": {"ark:12345/x5"}, "column.0": {"url"}}).leads(p.location())
	b.get(p.location()).has(200, "1 row ")
	b.get("/.desk/many").has(200, "Sent and not used yet")
	b.lang = "pt-BR"
	b.get("/.desk/many").has(200, "Muitos nomes de uma vez")
	b.get(p.location()).has(200, "Nada foi gravado ainda")
	b.get("/.desk/jobs").has(200, "Não há tarefas")
	b.get("/.desk/replace").has(200, "Substituir um servidor")
}

// TestManyRights walks the forms with every role: a job does what its user may do.
func TestManyRights(t *testing.T) {
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": true, "ruth": false, "sam": false} {
		s := newSite(t)
		s.runJobs()
		s.as("ed").make(url.Values{"own": {"ark:12345/x5old"}, "target.0.url": {"https://old.example.org/1"}})
		b := s.as(user)
		p := b.send("a.csv", "id,url\nark:12345/x5new,https://example.org/1\nark:12345/x5old,https://old.example.org/2\n,https://example.org/3\n", intoX5).leads("/.desk/many/")
		shown := b.get(p.location()) // a user without any role does not even see the namespace
		if good := strings.Contains(shown.text, "Write all 3 rows"); good != may {
			t.Errorf("%s: the preview says %v\n%s", user, good, shown.main())
		}
		answer := b.write(p.location(), "good")
		if started := answer.StatusCode == http.StatusSeeOther; started != may {
			t.Errorf("%s started a job: %v", user, started)
		}
		if may {
			b.awaitJob(answer.location()).has(200, "done", "2</b> <span>names made", "1</b> <span>name changed")
			s.as("ruth").post(answer.location()+"/cancel", nil).has(404)
			s.as("ruth").post(answer.location()+"/undo", nil).has(404)
		}
		replaced := b.post("/.desk/replace", url.Values{"from": {"old.example.org"}, "to": {"new.example.org"}})
		if started := replaced.StatusCode == http.StatusSeeOther; started != may {
			t.Errorf("%s replaced a host: %v %s", user, started, replaced.main())
		}
		if may {
			b.awaitJob(replaced.location()).has(200, "done", "1</b> <span>name changed")
		}
	}
}

// TestManyHostile: nothing that is sent is large without bound, runs, or is markup.
func TestManyHostile(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	b.send("huge.csv", strings.Repeat("x", job.MaxUpload+1), intoX5).has(422, "more than")
	b.send("book.xlsx", "PK\x03\x04 and so on", intoX5).has(422, "save the sheet as CSV")
	b.send("book.csv.gz", "\x1f\x8b and so on", intoX5).has(422, "decompress it")
	b.send("empty.csv", "", intoX5).has(422, "nothing in it")
	b.follow(b.send("columns.csv", "url"+strings.Repeat(",", 1_000_000)+"\nhttps://example.org/1\n", intoX5)).has(422, "1000001 columns")
	b.follow(b.send("row.csv", "url,title\nhttps://example.org/1,"+strings.Repeat("x", 10<<20)+"\nhttps://example.org/2,Two\n", intoX5)).has(200, "2 rows", "bytes")
	rows := "url,title\n" + strings.Repeat("https://example.org/1,x\n", job.MaxRows+1)
	b.follow(b.send("rows.csv", rows, intoX5)).has(422, "more than 50000 rows")
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>'`
	quoted := `"` + strings.ReplaceAll(evil, `"`, `""`) + `"`
	p := b.send(evil+".csv", "url,title,"+quoted+"\nhttps://example.org/1,"+quoted+","+quoted+"\n"+quoted+","+quoted+",=1+1\n", intoX5).leads("/.desk/many/")
	started := b.write(p.location(), "good")
	pages := []page{b.get("/.desk/many"), b.get("/.desk/replace?from=" + url.QueryEscape(evil) + "&to=" + url.QueryEscape(evil))}
	if started.StatusCode == http.StatusSeeOther {
		pages = append(pages, b.awaitJob(started.location()))
		b.get(started.location()+"/result.csv").has(200, "'=1+1")
	} else {
		t.Errorf("got %s", started.main())
	}
	again := b.send(evil+".csv", "url,title,"+quoted+"\n"+quoted+","+quoted+","+quoted+"\n", intoX5)
	pages = append(pages, b.follow(again))
	for _, p := range pages {
		if strings.Contains(p.text, "<script>alert") || strings.Contains(p.text, "<img src=x") {
			t.Errorf("%s has markup of a user", p.Request.URL)
		}
	}
	for n := range job.MaxUploads + 1 { // there are some already
		if p := b.send("more.csv", "url\nhttps://example.org/1\n", intoX5); p.StatusCode != http.StatusSeeOther {
			p.has(422, "throw them away")
			break
		} else if n == job.MaxUploads {
			t.Error("there is no limit")
		}
	}
	s.now = s.now.Add(job.UploadLife + time.Minute)
	b = s.as("ed")
	b.get(p.location()).has(404)
	b.send("later.csv", "url\nhttps://example.org/1\n", intoX5).leads("/.desk/many/")
	b.get("/.desk/many/nonsense").has(404)
	b.get("/.desk/jobs/nonsense").has(404)
}

// TestReplace: a great change needs its number typed, and a fresh proof.
func TestReplace(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	var sheet strings.Builder
	sheet.WriteString("id,url\n")
	for i := range 120 {
		fmt.Fprintf(&sheet, "ark:12345/x5r%03d,https://old.example.org/maps/%d\n", i, i)
	}
	p := b.send("a.csv", sheet.String(), intoX5).leads("/.desk/many/")
	b.awaitJob(b.write(p.location(), "all").leads("/.desk/jobs/").location())
	b.get("/.desk/replace").has(200, "When a site moves")
	b.get("/.desk/replace?from=&to=x").has(422, `href="#from"`)
	b.get("/.desk/replace?from=old.example.org&to=https://new.example.org/").has(422, "two hosts")
	b.get("/.desk/replace?from=old.example&to=new.example.org").has(200, "0 names lead there")
	b.get("/.desk/replace?from=old.example.org&to=elsewhere.example.net").has(200, "120 of them can&#39;t be changed")
	query := url.Values{"from": {"https://old.example.org/maps/"}, "to": {"https://new.example.org/"}, "namespace": {"ark:12345/x5"}}
	b.get("/.desk/replace?"+query.Encode()).has(200, "120 names lead there", "https://old.example.org/maps/0", "https://new.example.org/0", "To confirm, type how many names change: 120")
	b.post("/.desk/replace", query).has(422, `href="#number"`)
	query.Set("number", "120")
	s.now = s.now.Add(time.Hour)
	b.post("/.desk/replace", query).has(403, `value="https://old.example.org/maps/"`) // asks for a proof
	b = s.as("ed")
	started := b.post("/.desk/replace", query).leads("/.desk/jobs/")
	b.awaitJob(started.location()).has(200, "120 of 120", "120</b> <span>names changed")
	b.get("/.desk/record?id=ark:12345/x5r007").has(200, "https://new.example.org/7")
	b.post("/.desk/record", url.Values{"id": {"ark:12345/x5r007"}, "version": {"2"}, "do": {"save"}, "target.0.url": {"https://example.org/mine"}}).leads("/.desk/record")
	b.get(started.location()+"/undo").has(200, "119 names get their former content", "1 name is left", "it was changed since")
	b.post(started.location()+"/undo", url.Values{"number": {"1"}}).has(422)
	undone := b.post(started.location()+"/undo", url.Values{"number": {"119"}}).leads("/.desk/jobs/")
	b.awaitJob(undone.location()).has(200, "119</b> <span>undone", "1</b> <span>left as it is")
	b.get("/.desk/record?id=ark:12345/x5r001").has(200, "https://old.example.org/maps/1")
	b.get("/.desk/record?id=ark:12345/x5r007").has(200, "https://example.org/mine")
}

// TestManyTwice: a form that was sent before, or whose page is out of date, changes nothing that the
// user has not seen.
func TestManyTwice(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	p := b.send("a.csv", "id,url\nark:12345/x5a,https://example.org/1\nark:12345/x5b,https://example.org/2\n", intoX5).leads("/.desk/many/")
	form := b.get(p.location()).has(200, "Write all 2 rows").fields(strings.TrimPrefix(p.location(), "/.desk/"))
	for _, do := range []string{"", "nonsense"} {
		form.Set("do", do)
		b.post(p.location(), form).has(400, "can&#39;t be read")
	}
	b.make(url.Values{"own": {"ark:12345/x5b"}, "target.0.url": {"https://example.org/old"}})
	s.now = s.now.Add(2 * time.Minute) // until then the judgement is remembered
	form.Set("do", "all")
	b.post(p.location(), form).has(409, "now 1 are new and 1 change")
	b.lang = "pt-BR"
	b.post(p.location(), form).has(409, "agora 1 são novos e 1 mudam")
	b.lang = ""
	b.awaitJob(b.write(p.location(), "all").leads("/.desk/jobs/").location())

	// The new beginning begins with the old one: a second replacement would make it longer.
	query := url.Values{"from": {"https://example.org/"}, "to": {"https://example.org/new/"}, "namespace": {"ark:12345/x5"}}
	form = b.get("/.desk/replace?"+query.Encode()).has(200, "2 names lead there").fields("replace")
	first := b.post("/.desk/replace", form).leads("/.desk/jobs/")
	if again := b.post("/.desk/replace", form).leads("/.desk/jobs/"); again.location() != first.location() {
		t.Errorf("%s and %s", first.location(), again.location())
	}
	b.awaitJob(first.location()).has(200, "2</b> <span>names changed")
	if again := b.post("/.desk/replace", form).leads("/.desk/jobs/"); again.location() != first.location() {
		t.Errorf("%s and %s", first.location(), again.location())
	}
	b.get("/.desk/record?id=ark:12345/x5a").has(200, "https://example.org/new/1")
	if other := b.get("/.desk/replace?" + query.Encode()).fields("replace"); other.Get("once") == form.Get("once") {
		t.Error("two forms start one job")
	}
	// The ID of another user's job is of no use.
	s.as("olga").post("/.desk/replace", form).has(409, "started already")
}

// TestManyTwoTabs: a preview is written as it was shown, also if another window has the same file read in another way with the same numbers.
func TestManyTwoTabs(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/q7", Owner: "ed", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".reeddk"}}))(t)
	b := s.as("ed")
	path := b.send("a.csv", "url,title\nhttps://example.org/1,One\nhttps://example.org/2,Two\n", intoX5).leads("/.desk/many/").location()
	first := b.get(path).has(200, "Names will be made in ark:12345/x5 for 2 rows").fields(strings.TrimPrefix(path, "/.desk/"))
	first.Set("do", "all")
	b.post(path, url.Values{"do": {"columns"}, "encoding": {"auto"}, "update": {"yes"}, "namespace": {"ark:12345/q7"}, "column.0": {"url"}, "column.1": {"what"}}).leads(path)
	b.post(path, first).has(409, "Nothing was written", "Names will be made in ark:12345/q7 for 2 rows")
	b.lang = "pt-BR"
	b.post(path, first).has(409, "Nada foi gravado")
	b.lang = ""
	// Nor with other meanings of the columns.
	second := b.get(path).fields(strings.TrimPrefix(path, "/.desk/"))
	second.Set("do", "all")
	b.post(path, url.Values{"do": {"columns"}, "encoding": {"auto"}, "update": {"yes"}, "namespace": {"ark:12345/q7"}, "column.0": {"url"}, "column.1": {"who"}}).leads(path)
	b.post(path, second).has(409, "Nothing was written")
	second.Del("seen")
	b.post(path, second).has(409, "Nothing was written")
	b.awaitJob(b.write(path, "all").leads("/.desk/jobs/").location()).has(200, "2</b> <span>names made")
}

// TestPasteAfterEnd: rows that were pasted are not lost when the session has ended.
func TestPasteAfterEnd(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	s.now = s.now.Add(13 * time.Hour)
	form := url.Values{"namespace": {"ark:12345/x5"}, "text": {"https://example.org/1\nhttps://example.org/2"}}
	b.send("", "", form).has(401, "Your session has ended", "https://example.org/1", "https://example.org/2", `name="namespace"`, `action="/.desk/many"`)
	b.send("large.csv", strings.Repeat("x", 3*maxForm), form).has(401, "https://example.org/1")
	b.send("", "", url.Values{"text": {strings.Repeat("x", maxForm+1)}}).has(400, "send it as a file")
}

// TestFilesAreHarmless: no file has a cell that a spreadsheet runs, and an import reads what was there.
func TestFilesAreHarmless(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	b := s.as("ed")
	const sheet = "url,title,=cmd()\nhtps://example.org/1,=1+1,\"-2,3\"\n\"x\"y,=4+4,+5\n\"=6\",\"@7\"\"8\",'=9\n,\",=10\",\n"
	p := b.send("a.csv", sheet+"https://example.org/1,'=good,\n", intoX5).leads("/.desk/many/")
	files := []page{b.get(p.location() + "/rejects").has(200)}
	job := b.write(p.location(), "good").leads("/.desk/jobs/").location()
	b.awaitJob(job)
	files = append(files, b.get(job+"/rejects").has(200))
	for _, f := range files {
		f.has(200, "'=cmd()", "htps://example.org/1,'=1+1,\"'-2,3\"\r\n", "\"x\"y,'=4+4,'+5\r\n", "'=6,\"'@7\"\"8\",'=9\r\n")
		for line := range strings.Lines(f.text) {
			for _, cell := range strings.Split(line, ",") {
				if cell = strings.TrimLeft(cell, `"`); cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) && !strings.Contains(line, `,"`) {
					t.Errorf("%q begins as a formula in %q", cell, line)
				}
			}
		}
	}
	b.make(url.Values{"own": {"ark:12345/x5q"}, "target.0.url": {"https://example.org/q"}, "what": {"'=quoted"}})
	b.get("/.desk/names.csv?q=quoted").has(200, "''=quoted")
	row := auditRow(&stele.AuditEntry{Object: "=1", Details: "'=2"})
	if got := row[8] + " " + row[13]; got != "'=1 ''=2" {
		t.Errorf("the file of the audit trail has %s", got)
	}
}

// TestOpenJobIsCheap: the page of an open job, which is read every two seconds, does not read its rows.
func TestOpenJobIsCheap(t *testing.T) {
	c := &call{h: &Handler{}} // without jobs to read
	if err := c.refusedRows(nil, &job.Job{State: job.Working, Counts: job.Counts{Refused: 1}}); err != nil {
		t.Error(err)
	}
}
