package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// lsidPrefix is what the LSIDs begin with whose metadata are asked for, and lsidNames how many there are: more than a cache keeps hot would
// measure the disk of both.
const (
	lsidPrefix = "urn:lsid:bench.example.org:things:"
	lsidNames  = 100_000
)

// byLSID compares getMetadata of the LSID protocol by HTTP GET with the answer of the same record in JSON-LD, of one server: the CPU time of
// each.
func (r *registryBench) byLSID(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	n := min(r.records, lsidNames)
	file := filepath.Join(r.work, "lsids.jsonl")
	if err := writeFile(file, inOrder(n), writeLSIDs); err != nil {
		return err
	}
	for _, args := range [][]string{{"ns", "add", strings.TrimSuffix(lsidPrefix, ":things:")}, {"import", file}} {
		if err := command(ctx, r.stele, append(args, "--data", r.filled)...); err != nil {
			return err
		}
	}
	names := filepath.Join(r.work, "lsids")
	if err := writeNames(names, n); err != nil {
		return err
	}
	asked := [2]struct{ path, accept string }{{"/authority/metadata?lsid=" + lsidPrefix, ""}, {"/" + lsidPrefix, "application/ld+json"}}
	var loads [2]load
	for i, a := range asked {
		loads[i] = load{core: cores[1], script: filepath.Join(r.work, fmt.Sprintf("lsid%d.lua", i)), names: names}
		text := strings.Replace(loadScript, "GET /ark:12345/", "GET "+a.path, 1)
		if a.accept != "" {
			text = strings.Replace(text, `Host: id.example.org\r\n`, `Host: id.example.org\r\nAccept: `+a.accept+`\r\n`, 1)
		}
		if err := os.WriteFile(loads[i].script, []byte(text), 0o644); err != nil {
			return err
		}
	}
	s, _, err := r.startStele(ctx, cores[0], "--cost-rate", "0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for i, want := range []string{"application/rdf+xml", "application/ld+json"} {
		_, what, _ := describe(0)
		if err := checkMetadata(ctx, s.url+asked[i].path+benchName(0), asked[i].accept, want, what); err != nil {
			return err
		}
	}
	s.settle(ctx)
	var each [2][]float64
	var ratios []float64
	for i := range rounds + 1 { // the first warms up
		var seen [2]float64
		for j := range loads {
			a, err := loads[j].run(ctx, s)
			if err != nil {
				return err
			}
			seen[j] = 1e6 / a.perCPU()
		}
		if i == 0 {
			continue
		}
		each[0], each[1], ratios = append(each[0], seen[0]), append(each[1], seen[1]), append(ratios, seen[0]/seen[1])
		progress("metadata, round %d of %d: %.1f us of CPU each by the LSID protocol, and %.1f us in JSON-LD", i, rounds, seen[0], seen[1])
	}
	fmt.Fprintf(w, "getMetadata of an LSID by HTTP GET : the same record in JSON-LD, CPU time each\t%.1f us\t%.1f us\t%.2f\t\tat most 2\n", median(each[0]), median(each[1]), median(ratios))
	return nil
}

// writeLSIDs writes records of LSIDs as JSONL.
func writeLSIDs(w *bufio.Writer, list []int) {
	for _, i := range list {
		who, what, when := describe(i)
		fmt.Fprintf(w, `{"id":"%s%s","url":"%s","metadata":{"who":"%s","what":"%s","when":"%s"}}`+"\n", lsidPrefix, benchName(i), itemAt(i), who, what, when)
	}
}

// checkMetadata looks whether an answer has the type and the text that it should.
func checkMetadata(ctx context.Context, url, accept, want, says string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if got := res.Header.Get("Content-Type"); err == nil && (res.StatusCode != http.StatusOK || !strings.HasPrefix(got, want) || !strings.Contains(string(body), says)) {
		err = fmt.Errorf("%s answers %s, %s: %.200s", url, res.Status, got, body)
	}
	return err
}
