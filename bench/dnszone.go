package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	benchZone = "paradisec.example."
	benchRoot = "urn.example."
)

// publishedParts returns the n-th published name, without its prefix, in three parts.
func publishedParts(n int) (a, b, c string) {
	name := benchName(n)
	return name[:4], name[4:7], name[7:]
}

func publishedName(n int) string {
	a, b, c := publishedParts(n)
	return "urn:paradisec:" + a + ":" + b + ":" + c
}

// ownerOf returns the owner name of the n-th published name.
func ownerOf(n int) string {
	a, b, c := publishedParts(n)
	return c + "." + b + "." + a + "." + benchZone
}

// publishedAt returns where the n-th published name leads.
func publishedAt(n int) string {
	a, b, c := publishedParts(n)
	return "https://catalog.example.org/" + a + "/" + b + "/" + c
}

// publish makes a registry with the names, and publishes them. A target has a rule, and
// the first of them one of the plain DDDS too: with two there are three rules.
func (d *dnsBench) publish(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil || d.published != "" {
		return err
	}
	progress("import of %d names", d.names)
	data, questions := filepath.Join(d.work, "published"+d.label), filepath.Join(d.work, "questions"+d.label)
	records := data + ".jsonl"
	if err := errors.Join(writePublished(records, 0, d.names), writeQuestions(questions, min(d.names, million))); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"import", records},
		{"zone", "add", "urn:paradisec", "--zone", benchZone, "--layout", "names", "--parts", "3", "--ns", "ns1.paradisec.example=127.0.0.1"},
		{"zone", "add", "--root", benchRoot, "--ns", "ns1.paradisec.example"},
	} {
		if err := command(ctx, d.stele, append(args, "--data", data)...); err != nil {
			return err
		}
	}
	d.published, d.questions = data, questions
	return os.Remove(records)
}

// writePublished writes the names from one to another to a file for import.
func writePublished(path string, from, to int) error {
	return writeLines(path, from, to, func(w *bufio.Writer, i int) {
		fmt.Fprintf(w, `{"id":%q,"targets":[{"url":%q,"type":"text/html"},{"url":%q,"type":"audio/wav","preference":20}]}`+"\n",
			publishedName(i), publishedAt(i), publishedAt(i)+".wav")
	})
}

// writeLines writes what one writes for each number from one to another to a file, which may be larger than the memory.
func writeLines(path string, from, to int, one func(w *bufio.Writer, i int)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := from; i < to; i++ {
		one(w, i) // Flush has the error
	}
	return errors.Join(w.Flush(), f.Close())
}

// export writes the zone to a file, for the servers of others.
func (d *dnsBench) export(ctx context.Context) error {
	if err := d.publish(ctx); err != nil || d.zone != "" {
		return err
	}
	progress("export of the zone")
	file := filepath.Join(d.work, "zone"+d.label)
	if err := command(ctx, d.stele, "zone", "export", "--data", d.published, benchZone, "-o", file); err != nil {
		return err
	}
	d.zone = file
	return nil
}

// startOurs starts our server on a core, and returns how long it took from there to its
// first answer. Nothing limits how much it answers, as nothing limits the others.
func (d *dnsBench) startOurs(ctx context.Context, core int, flags ...string) (*nameServer, time.Duration, error) {
	return d.startOursOn(ctx, strconv.Itoa(core), flags...)
}

// startOursOn is the same for some cores, in the form of taskset's list.
func (d *dnsBench) startOursOn(ctx context.Context, cores string, flags ...string) (*nameServer, time.Duration, error) {
	at, err := freeAddress()
	if err != nil {
		return nil, 0, err
	}
	return startNameServer(ctx, cores, "stele", at, d.stele, append([]string{"serve", "--data", d.published,
		"--dns", at, "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8", "--dns-rate", "0", "--dns-signatures", "0", "--http", "127.0.0.1:0", "--log-level", "warn"}, flags...)...)
}

// nameServer is a server that answers questions of the DNS.
type nameServer struct {
	*server
	version string // and its name
	at      string
}

// startNameServer starts a name server on some cores, and returns how long it took from
// there to its first answer.
func startNameServer(ctx context.Context, cores, version, at, program string, args ...string) (*nameServer, time.Duration, error) {
	begin := time.Now()
	s, err := startServerOn(ctx, cores, at, program, args...)
	if err != nil {
		return nil, 0, err
	}
	err = s.awaitAnswer(ctx, func() error {
		_, err := askRules(ctx, at, ownerOf(0))
		return err
	})
	if err != nil {
		return nil, 0, errors.Join(err, s.stop())
	}
	return &nameServer{server: s, version: version, at: at}, time.Since(begin), nil
}
