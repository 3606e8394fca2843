package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/desk"
)

// TestServersShareJobs sends a file to one of two servers of a database, kills the server in the
// middle of the job, and sees the other one finish it; then the same with undoing the job.
func TestServersShareJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, append([]string{"--job-lease", "2s"}, proxied...)...)
	t.Run("sessions", c.shareSessions)
	key := c.namespace("ark:12345/x5", stele.Minter{Kind: stele.MinterNOID, Template: ".reeeeedk", Seed: 7}, stele.Publication{})
	u := c.deskUser()

	const known, named, nameless = 60, 4000, 4000
	for n := range known {
		if _, err := c.servers[0].Register(t.Context(), &stele.Record{ID: c.id(fmt.Sprintf("ark:12345/x5k%d", n)), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://old.example.org/" + strconv.Itoa(n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	file.WriteString("id,url,what\n")
	for n := range known {
		fmt.Fprintf(&file, "ark:12345/x5k%d,https://new.example.org/%d,Known %d\n", n, n, n)
	}
	for n := range named {
		fmt.Fprintf(&file, "ark:12345/x5n%d,https://new.example.org/n%d,Named %d\n,https://new.example.org/m%d,Made %d\n", n, n, n, n, n)
	}

	// What is known at one server is known at the other one, and after a restart.
	preview := u.upload(c.servers[0], file.Bytes(), key.String())
	c.stop(0, syscall.SIGTERM)
	c.servers[0] = c.start()
	var seen []string
	for _, s := range c.servers {
		page := u.get(s, preview)
		if !strings.Contains(page, `name="new" value="8000"`) || !strings.Contains(page, `name="changed" value="60"`) {
			t.Fatalf("%s has another preview:\n%s", s.http, page)
		}
		if seen = regexp.MustCompile(`name="seen" value="([0-9a-f]{64})"`).FindStringSubmatch(page); seen == nil {
			t.Fatalf("%s does not say what is shown:\n%s", s.http, page)
		}
	}

	// While the second server is stopped, only the first one can take the job.
	c.signal(1, syscall.SIGSTOP)
	job := u.post(c.servers[0], preview, url.Values{"do": {"all"}, "seen": {seen[1]}, "new": {"8000"}, "changed": {"60"}})
	u.killAmid(c, 0, job)
	c.signal(1, syscall.SIGCONT)
	page := u.ends(c.servers[1], job)
	wantText(t, page, "8,060 of 8,060", "Went on after an interruption", "<b>8,000</b>", "<b>60</b>")

	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(u.get(c.servers[1], job+"/result.csv"), "\ufeff"))).ReadAll()
	if err != nil || len(lines) != 1+known+named+nameless {
		t.Fatalf("the result has %d lines: %v", len(lines), err)
	}
	listed := make(map[string]bool)
	for _, line := range lines[1:] {
		if listed[line[1]] {
			t.Errorf("the result has %s twice", line[1])
		}
		listed[line[1]] = true
	}
	c.servers[1].hasVersions(t, key, map[string]int{"Known": 2, "Named": 1, "Made": 1}, known, named, nameless)

	// Undoing is a job, too; this time the first server goes on.
	c.servers[0] = c.start()
	c.signal(0, syscall.SIGSTOP)
	undo := u.post(c.servers[1], job+"/undo", url.Values{"number": {"8060"}})
	u.killAmid(c, 1, undo)
	c.signal(0, syscall.SIGCONT)
	page = u.ends(c.servers[0], undo)
	wantText(t, page, "8,060 of 8,060", "<b>8,060</b>")
	c.servers[0].hasVersions(t, key, map[string]int{"Known": 3, "Named": 2, "Made": 2}, known, named, nameless)
}

func wantText(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %q:\n%s", text, page)
		}
	}
}

// hasVersions makes sure that each record has as many versions as the first word of a title says.
func (s *clusterServer) hasVersions(t *testing.T, key stele.NamespaceKey, want map[string]int, counts ...int) {
	t.Helper()
	versions, titles, ids := make(map[stele.ID]int), make(map[stele.ID]string), make(map[string]stele.ID)
	for rec, err := range s.Export(t.Context(), key, true) {
		if err != nil {
			t.Fatal(err)
		}
		if versions[rec.ID]++; rec.Metadata[stele.What] != "" {
			title := rec.Metadata[stele.What]
			if other, ok := ids[title]; ok && other != rec.ID {
				t.Errorf("the row %q became %s and %s", title, other, rec.ID)
			}
			titles[rec.ID], ids[title] = title, rec.ID
		}
	}
	all := 0
	for _, n := range counts {
		all += n
	}
	if len(versions) != all {
		t.Errorf("there are %d records, want %d", len(versions), all)
	}
	for id, n := range versions {
		word, _, _ := strings.Cut(titles[id], " ")
		if n != want[word] {
			t.Errorf("%s, %q, has %d versions, want %d", id, titles[id], n, want[word])
		}
	}
}

// signal sends a server a signal.
func (c *cluster) signal(n int, s syscall.Signal) {
	c.t.Helper()
	if err := c.servers[n].cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// stop ends a server.
func (c *cluster) stop(n int, s syscall.Signal) {
	c.t.Helper()
	c.servers[n].Close()
	c.servers[n].end(c.t, s)
}

// deskUser is a browser whose user has signed in. Its cookies are for all servers: they have the
// same address.
type deskUser struct {
	t *testing.T
	*http.Client
}

// deskUser signs the administrator in by a one-time link at the first server.
func (c *cluster) deskUser() *deskUser {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	u := &deskUser{c.t, &http.Client{Jar: jar, Transport: &http.Transport{}}}
	c.t.Cleanup(u.CloseIdleConnections)
	link := strings.Fields(runStele(c.t, "user", "link", "root", "--store", c.url, "--base", c.servers[0].http))[0]
	u.post(c.servers[0], strings.TrimPrefix(link, c.servers[0].http), nil)
	return u
}

// do sends a request, and returns the path to which it leads and the page there.
func (u *deskUser) do(r *http.Request) (path, page string) {
	u.t.Helper()
	for try := 1; ; try++ {
		answer, err := u.Do(r)
		if err != nil {
			u.t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err == nil && answer.StatusCode == http.StatusOK:
			return answer.Request.URL.Path, string(text)
		case err != nil, try == 5, !strings.Contains(string(text), "it takes too long to look at so many records"):
			u.t.Fatalf("%s: %s, %v\n%s", r.URL, answer.Status, err, text)
		}
		// The machine is busy with other tests. Nothing was begun, so it can be asked again.
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				u.t.Fatal(err)
			}
		}
	}
}

func (u *deskUser) get(s *clusterServer, path string) string {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodGet, s.http+path, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	_, page := u.do(r)
	return page
}

// post sends a form, and returns the path to which it leads.
func (u *deskUser) post(s *clusterServer, path string, form url.Values) string {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, s.http+path, strings.NewReader(form.Encode()))
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	to, _ := u.do(r)
	return to
}

// upload sends a file, and returns the path of its preview.
func (u *deskUser) upload(s *clusterServer, file []byte, namespace string) string {
	u.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range map[string]string{"namespace": namespace, "update": "yes"} {
		if err := w.WriteField(name, value); err != nil {
			u.t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", "names.csv")
	if err != nil {
		u.t.Fatal(err)
	}
	_, _ = part.Write(file) // into memory
	_ = w.Close()
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, s.http+desk.Root+"many", &body)
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	to, _ := u.do(r)
	return to
}

var progressOfJob = regexp.MustCompile(`<progress [^>]*max="(\d+)" value="(\d+)"`)

// killAmid kills the server that works on a job when the job has done something and is not done.
func (u *deskUser) killAmid(c *cluster, n int, job string) {
	u.t.Helper()
	eventually(u.t, "the job does something", func() bool {
		page := u.get(c.servers[n], job)
		at := progressOfJob.FindStringSubmatch(page)
		if at == nil || at[1] == at[2] {
			u.t.Fatalf("the job ended too soon, or there is none:\n%s", page)
		}
		return at[2] != "0"
	})
	c.stop(n, syscall.SIGKILL)
	u.CloseIdleConnections()
}

// ends waits for the end of a job, and returns its page.
func (u *deskUser) ends(s *clusterServer, job string) (page string) {
	u.t.Helper()
	eventually(u.t, "the job ends", func() bool {
		page = u.get(s, job)
		return strings.Contains(page, `data-live=""`)
	})
	return page
}
