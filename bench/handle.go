package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/wire/hdl"
)

const (
	handlePrefix = "20.500.12345"

	handlePairs   = 5
	handlesAsked  = 200_000 // requests over UDP in a round, at least
	handlesAtOnce = 40_000  // connections in a round
)

// handleName returns the n-th handle.
func handleName(n int) string { return handlePrefix + "/" + benchName(n) }

// handleBench measures the Handle protocol.
type handleBench struct {
	*dnsBench // with names of its own

	data string // folder of a registry with all handles; "" if there is none yet
}

func newHandleBench(d *dnsBench) *handleBench {
	return &handleBench{dnsBench: &dnsBench{registryBench: d.registryBench, names: d.names, label: "-handles"}}
}

// site is the folder with the key of the administrator of the prefix.
func (h *handleBench) site() string { return filepath.Join(h.work, "handle-site") }

// export returns the file with all handles, as the reference server exports them.
func (h *handleBench) export() (path string, err error) {
	path = filepath.Join(h.work, "handles.json")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	progress("writing %d handles", h.records)
	return path, writeFile(path, numbers(h.records), writeHandles)
}

// fillHandles makes sure that there is a registry with all handles.
func (h *handleBench) fillHandles(ctx context.Context) error {
	if err := h.prepare(ctx); err != nil || h.data != "" {
		return err
	}
	_, err := h.importExport(ctx, filepath.Join(h.work, "handles"))
	return err
}

// importExport imports all handles from the export, into a new registry.
func (h *handleBench) importExport(ctx context.Context, data string) (c cost, err error) {
	export, err := h.export()
	if err != nil {
		return c, err
	}
	if err := h.setUp(ctx, data); err != nil {
		return c, err
	}
	progress("import of %d handles", h.records)
	c, err = h.timed(ctx, "import", "--from", "handle", "--with-admins", export, "--data", data)
	h.data = data
	return c, err
}

// setUp makes a registry with a prefix in a folder.
func (h *handleBench) setUp(ctx context.Context, data string) error {
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(h.site())); err != nil {
		return err
	}
	return command(ctx, h.stele, "ns", "add", handlePrefix+"/", "--handle-server", "--handle-address", "127.0.0.1", "--handle-out", h.site(), "--data", data)
}

// writeHandles writes handles as the reference server exports them: each has a URL and an administrator. Their answers
// have less than three times the octets of the requests: others would use up the budget of the load's address.
func writeHandles(w *bufio.Writer, list []int) {
	fmt.Fprintf(w, `{"homedPrefixes":["0.NA/%s"],"handleRecords":{`, handlePrefix)
	for k, i := range list {
		if k > 0 {
			_, _ = w.WriteString(",")
		}
		name := handleName(i)
		fmt.Fprintf(w, "\n"+`"%s":{"handle":"%s","values":[{"index":1,"type":"URL","data":{"format":"string","value":"https://archive.example.org/items/%s"},"ttl":86400,"timestamp":"2023-11-14T22:13:20Z"},`+
			`{"index":100,"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"0.NA/%s","index":300,"permissions":"111111111111"}},"ttl":86400,"timestamp":"2023-11-14T22:13:20Z"}]}`,
			name, name, benchName(i), handlePrefix)
	}
	fmt.Fprintln(w, "}}")
}

// resolution compares what an answer costs: over UDP with an answer of the DNS, and over TCP with bare connections of
// the same sizes. All run on the same core, and the load on another one.
func (h *handleBench) resolution(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := errors.Join(h.fillHandles(ctx), h.publish(ctx)); err != nil { // with the names of the DNS
		return err
	}
	hdlAt, err := freeAddress()
	if err != nil {
		return err
	}
	ours, _, err := h.startOurs(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	handles, err := startServer(ctx, cores[0], hdlAt, h.stele, "serve", "--data", h.data, "--hdl", hdlAt, "--http", "127.0.0.1:0", "--log-level", "warn")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, handles.stop()) }()
	first, err := resolveRequest(0)
	if err != nil {
		return err
	}
	size := 0
	if err := handles.awaitAnswer(ctx, func() (err error) { size, err = askOnce(ctx, hdlAt, first); return err }); err != nil {
		return err
	}
	ours.settle(ctx)
	handles.settle(ctx)
	byDNS, byHandle := filepath.Join(h.work, "dns-requests"), filepath.Join(h.work, "handle-requests")
	if err := errors.Join(writeRequests(byDNS, h.names, dnsRequest), writeRequests(byHandle, h.records, resolveRequest)); err != nil {
		return err
	}
	udp := contest{w: w, load: cores[1], pairs: handlePairs,
		ours: contestant{handles, loader{"udp-hdl", hdlAt, byHandle, max(1, handlesAsked/h.records)}},
		peer: contestant{ours.server, loader{"udp-dns", ours.at, byDNS, max(1, handlesAsked/h.names)}}}
	if err := udp.run(ctx, fmt.Sprintf("a handle resolved over UDP, among %d : an answer of the DNS, among %d names; CPU time each", h.records, h.names), "at most 2"); err != nil {
		return err
	}
	return h.connections(ctx, w, cores, handles, hdlAt, len(first), size)
}

// connections compares answers over TCP with bare connections.
func (h *handleBench) connections(ctx context.Context, w *tabwriter.Writer, cores [2]int, handles *server, hdlAt string, request, answer int) (err error) {
	some, each := filepath.Join(h.work, "some-handle-requests"), min(h.records, handlesAtOnce)
	if err := writeRequests(some, each, resolveRequest); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	bareAt, err := freeAddress()
	if err != nil {
		return err
	}
	bare, err := startServer(ctx, cores[0], bareAt, program, "-connections", bareAt, "-sizes", fmt.Sprintf("%d,%d", request, answer))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	asked, err := resolveRequest(0)
	if err != nil {
		return err
	}
	if err := bare.awaitAnswer(ctx, func() error { _, err := askOnce(ctx, bareAt, asked); return err }); err != nil {
		return err
	}
	times := max(1, handlesAtOnce/each)
	tcp := contest{w: w, load: cores[1], pairs: handlePairs,
		ours: contestant{handles, loader{"tcp", hdlAt, some, times}}, peer: contestant{bare, loader{"tcp", bareAt, some, times}}}
	return tcp.run(ctx, "a handle resolved over TCP : accept, read, write and close in Go; CPU time each", "at most 1.3")
}

// contestant is a server and its load.
type contestant struct {
	*server
	loader
}

// contest compares two servers by the CPU time of an answer.
type contest struct {
	w          *tabwriter.Writer
	load       int // core
	pairs      int
	ours, peer contestant
}

func (c *contest) run(ctx context.Context, name, wanted string) error {
	var each [2][]float64
	var ratios []float64
	for i := range c.pairs + 1 {
		var seen [2]float64
		for j, one := range []contestant{c.ours, c.peer} {
			a, err := one.send(ctx, c.load, one.server)
			if err != nil {
				return err
			}
			seen[j] = a.each()
		}
		progress("%s, round %d of %d: %.2f us and %.2f us", name, i, c.pairs, seen[0], seen[1])
		if i == 0 {
			continue // what was not asked for before
		}
		for j := range seen {
			each[j] = append(each[j], seen[j])
		}
		ratios = append(ratios, seen[0]/seen[1])
	}
	fmt.Fprintf(c.w, "%s\t%.2f us\t%.2f us\t%.2f\t\t%s\n", name, median(each[0]), median(each[1]), median(ratios), wanted)
	return nil
}

// resolveRequest returns a request for the n-th handle, as the reference client sends it.
func resolveRequest(n int) ([]byte, error) {
	body := hdl.ResolveRequest{Handle: []byte(handleName(n))}
	m := hdl.Message{
		Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: uint32(n) + 1},
		Header:   hdl.Header{Operation: hdl.Resolve, Flags: hdl.PublicOnly, SiteSerial: hdl.UnknownSerial},
		Body:     body.Append(nil, hdl.Latest()),
	}
	return m.Append(nil), nil
}

// dnsRequest returns a question for the n-th name, as dnsperf sends it.
func dnsRequest(n int) ([]byte, error) {
	q := new(dns.Msg).SetQuestion(ownerOf(n), dns.TypeNAPTR).SetEdns0(4096, false)
	q.Id, q.RecursionDesired = uint16(n), false
	return q.Pack()
}

// askOnce sends a request over TCP, and returns how many octets the answer has.
func askOnce(ctx context.Context, at string, request []byte) (int, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	answer, err := hdl.ReadMessage(c)
	if err != nil {
		return 0, err
	}
	return len(answer), judge(answer, false)
}

// imports compares the import of a JSON export with that of the same records as JSONL.
func (h *handleBench) imports(ctx context.Context, w *tabwriter.Writer) error {
	if err := h.prepare(ctx); err != nil {
		return err
	}
	lines, other := filepath.Join(h.work, "handles.jsonl"), filepath.Join(h.work, "handle-lines")
	var ours, peer [2][]float64
	var ratios, byCPU []float64
	for i := range importRounds {
		if err := h.setUp(ctx, other); err != nil {
			return err
		}
		a, err := h.importExport(ctx, filepath.Join(h.work, "handles"))
		if err != nil {
			return err
		}
		if i == 0 {
			if err := command(ctx, h.stele, "export", handlePrefix+"/x", "-o", lines, "--data", h.data); err != nil {
				return err
			}
		}
		b, err := h.timed(ctx, "import", lines, "--data", other)
		if err != nil {
			return err
		}
		progress("import of %d handles, round %d of %d: %s, and as JSONL %s", h.records, i+1, importRounds, a, b)
		n := float64(h.records)
		ours[0], peer[0] = append(ours[0], n/a.wall.Seconds()), append(peer[0], n/b.wall.Seconds())
		ours[1], peer[1] = append(ours[1], a.cpu.Seconds()*1e6/n), append(peer[1], b.cpu.Seconds()*1e6/n)
		ratios, byCPU = append(ratios, b.wall.Seconds()/a.wall.Seconds()), append(byCPU, b.cpu.Seconds()/a.cpu.Seconds())
	}
	fmt.Fprintf(w, "import of %d handles from a JSON export : the same records as JSONL\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.6\n", h.records, median(ours[0]), median(peer[0]), median(ratios))
	fmt.Fprintf(w, "  by CPU time, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(ours[1]), median(peer[1]), median(byCPU))
	return nil
}

// timed runs our program, and returns what it took.
func (h *handleBench) timed(ctx context.Context, args ...string) (c cost, err error) {
	cmd := exec.CommandContext(ctx, h.stele, args...)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	c.wall = time.Since(begin)
	if err != nil {
		return c, fmt.Errorf("stele %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// serveSizes is serveConnections with sizes from the command line.
func serveSizes(ctx context.Context, address, sizes string) error {
	var request, answer int
	if _, err := fmt.Sscanf(sizes, "%d,%d", &request, &answer); err != nil {
		return fmt.Errorf("-sizes: %w", err)
	}
	return serveConnections(ctx, address, request, answer)
}
