package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"
)

// What is measured of the desk.
const (
	listRows    = 50 // of a page of the list, and of the API's list
	listRounds  = 15
	listCalls   = 1000 // of a round: CPU time is counted in hundredths of a second
	previewRows = 10_000
)

// desk measures pages of the desk: a list compared with the list of the API, and the preview
// of a file compared with 'stele import --dry-run'.
func (r *registryBench) desk(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	data := filepath.Join(r.work, "desk")
	progress("import of %d records for the desk", n)
	if _, err := r.importOnce(ctx, n, data); err != nil {
		return err
	}
	file := filepath.Join(r.work, "preview.csv")
	if err := writePreviewed(file, previewRows); err != nil {
		return err
	}
	dry, err := r.dryRuns(ctx, data, file)
	if err != nil {
		return err
	}
	if err := command(ctx, r.stele, "user", "add", "curator", "--admin", "--data", data); err != nil {
		return err
	}
	link, err := exec.CommandContext(ctx, r.stele, "user", "link", "curator", "--data", data).Output()
	if err != nil {
		return fmt.Errorf("stele user link: %w", err)
	}
	s, err := r.startAPI(ctx, -1, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	d := &deskClient{at: s.url}
	if err := d.signIn(ctx, string(link)); err != nil {
		return err
	}
	if err := compareLists(ctx, w, s, d, n); err != nil {
		return err
	}
	return d.comparePreviews(ctx, w, file, dry)
}

// writePreviewed writes a file of n names that the registry does not have.
func writePreviewed(path string, n int) error {
	var text bytes.Buffer
	text.WriteString("id,url,title,creator,date\n")
	for i := range n {
		fmt.Fprintf(&text, "ark:12345/preview%06d,https://archive.example.org/preview/%d/view,\"On the rivers of Bahia, volume %d\",\"Almeida, Brandt\",%d\n", i, i, i, 1900+i%120)
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}

// dryRuns returns how long the program takes to judge a file.
func (r *registryBench) dryRuns(ctx context.Context, data, file string) (took []float64, err error) {
	for range importRounds {
		begin := time.Now()
		if err := command(ctx, r.stele, "import", "--dry-run", "--data", data, file); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	return took, nil
}

// compareLists compares a page of the list with the same list of the API, by the CPU time that the server
// uses for them: the first page, which is read again and again, and pages of which none is read twice, so
// that nothing is kept of them.
func compareLists(ctx context.Context, w *tabwriter.Writer, s *apiServer, d *deskClient, n int) error {
	page := func(more string) error {
		_, err := d.get(ctx, "/.desk/names?namespace=ark%3A12345"+more)
		return err
	}
	list := func(more string) error {
		return s.ask(ctx, http.MethodGet, fmt.Sprintf("/api/v1/records?prefix=ark:12345&limit=%d", listRows)+more, nil)
	}
	if err := s.awaitAnswer(ctx, func() error { return page("") }); err != nil { // until the search index is there
		return err
	}
	s.settle(ctx)
	if err := s.compareAnswers(w, fmt.Sprintf("page of the desk with %d of %d records : list of the API, by CPU time", listRows, n), "at most 2", func(int) error { return page("") }, func(int) error { return list("") }); err != nil {
		return err
	}
	return s.compareAnswers(w, fmt.Sprintf("pages of the desk that were not read before, with %d of %d records : lists of the API, by CPU time", listRows, n), forInformation, func(i int) error {
		return page(fmt.Sprintf("&cursor=%d", n-i*listRows%n))
	}, func(i int) error {
		return list(fmt.Sprintf("&after=ark:12345/x%010x", i*(1<<40/listRounds/listCalls)))
	})
}

// compareAnswers compares two requests by the CPU time of the server, and prints medians. The requests are
// given a number that grows.
func (s *apiServer) compareAnswers(w *tabwriter.Writer, title, asked string, one, other func(i int) error) error {
	timed := func(round int, f func(i int) error) (float64, error) {
		begin := usedBy(s.pid())
		for i := range listCalls {
			if err := f(round*listCalls + i); err != nil {
				return 0, err
			}
		}
		return (usedBy(s.pid()) - begin).Seconds() / listCalls, nil
	}
	var ones, others, ratios []float64
	for round := range listRounds {
		a, err := timed(round, one)
		if err != nil {
			return err
		}
		b, err := timed(round, other)
		if err != nil {
			return err
		}
		ones, others, ratios = append(ones, a), append(others, b), append(ratios, a/b)
	}
	fmt.Fprintf(w, "%s\t%.2f ms\t%.2f ms\t%.2f\t\t%s\n", title, 1e3*median(ones), 1e3*median(others), median(ratios), asked)
	return nil
}

// deskClient is a browser that a curator has signed in with.
type deskClient struct {
	at     string
	cookie *http.Cookie
}

var (
	linkPath   = regexp.MustCompile(`/\.desk/link/\S+`)
	judgedText = regexp.MustCompile(`10,000`)
)

// signIn signs in by a one-time link.
func (d *deskClient) signIn(ctx context.Context, printed string) error {
	answer, _, err := d.send(ctx, http.MethodPost, linkPath.FindString(printed), "", nil)
	if err != nil {
		return err
	}
	if len(answer.Cookies()) == 0 {
		return fmt.Errorf("the link does not sign in: %s", answer.Status)
	}
	d.cookie = answer.Cookies()[0]
	return nil
}

// get returns a page.
func (d *deskClient) get(ctx context.Context, path string) ([]byte, error) {
	answer, page, err := d.send(ctx, http.MethodGet, path, "", nil)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return page, err
}

// send sends a request, and follows no redirect.
func (d *deskClient) send(ctx context.Context, method, path, media string, body []byte) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, d.at+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if d.cookie != nil {
		r.AddCookie(d.cookie)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, text, err
}

// comparePreviews sends a file and waits until its preview judges all rows, and compares that
// with dry runs of the program.
func (d *deskClient) comparePreviews(ctx context.Context, w *tabwriter.Writer, file string, dry []float64) error {
	rows, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var took []float64
	for range importRounds {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "preview.csv")
		if err != nil {
			return err
		}
		if _, err := part.Write(rows); err != nil {
			return err
		}
		if err := form.Close(); err != nil {
			return err
		}
		begin := time.Now()
		sent, page, err := d.send(ctx, http.MethodPost, "/.desk/many", form.FormDataContentType(), body.Bytes())
		if err != nil {
			return err
		}
		if sent.StatusCode != http.StatusSeeOther {
			return fmt.Errorf("the file is not taken: %s\n%.2000s", sent.Status, page)
		}
		if page, err = d.get(ctx, sent.Header.Get("Location")); err != nil {
			return err
		}
		if !judgedText.Match(page) {
			return fmt.Errorf("the preview does not judge all rows:\n%.4000s", page)
		}
		took = append(took, time.Since(begin).Seconds())
	}
	a, b := median(took), median(dry)
	fmt.Fprintf(w, "preview of %d rows at the desk : import --dry-run\t%.0f ms\t%.0f ms\t%.2f\t\tat most 1.5\n", previewRows, 1e3*a, 1e3*b, a/b)
	return nil
}
