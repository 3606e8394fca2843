package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// rollTTL is how long validators cache answers while keys are rolled, and rollWait is longer
// than that.
const (
	rollTTL  = time.Second
	rollWait = 2*rollTTL + rollTTL/2
)

// rollover is a signed archive whose keys are rolled, below a domain whose administrator
// changes its records when asked to, and a validator that is asked all the time.
type rollover struct {
	*archive
	tree     *signedTree
	token    string
	validate *nameServer
	serial   int

	mu     sync.Mutex
	what   string // is done
	wrong  []string
	rounds atomic.Int64
}

func newRollover(t *testing.T, sign ...string) *rollover {
	t.Helper()
	r := &rollover{archive: newArchive(t)}
	r.archive.stele(append([]string{"zone", "sign", archiveZone}, sign...)...)
	r.archive.stele("user", "add", "ann", "--admin")
	var token struct{ Credential string }
	if err := json.Unmarshal(lineOfJSON(r.archive.stele("token", "create", "ann", "--json")), &token); err != nil {
		t.Fatal(err)
	}
	r.token = token.Credential
	ds := r.archive.stele("zone", "ds", archiveZone)
	ours := r.serve("--ttl", rollTTL.String())
	r.tree = &signedTree{t: t, folder: t.TempDir(), routes: []route{{archiveZone, ours}}}
	above := r.tree.sign("example.", r.delegation(ds), signing{})
	r.tree.sign(".", "example. NS ns.other.test.\nns.other.test. A 127.0.0.1\n"+above, signing{})
	r.tree.serve()
	r.validate = r.tree.validatingUnbound()
	return r
}

// delegation is what the domain above has of the archive's zone.
func (r *rollover) delegation(ds string) string {
	seconds := strconv.Itoa(int(rollTTL.Seconds()))
	return "$TTL " + seconds + "\n" + archiveZone + " NS ns1.paradisec.example.\nns1.paradisec.example. A 127.0.0.1\n" +
		strings.ReplaceAll(ds, " 3600 IN DS", " "+seconds+" IN DS")
}

// do asks the running server for something.
func (r *rollover) do(what string, args ...string) string {
	r.t.Helper()
	r.mu.Lock()
	r.what = what
	r.mu.Unlock()
	cmd := exec.CommandContext(r.t.Context(), stele(r.t), append([]string{"zone"}, append(args, "--server", "http://127.0.0.1:"+strconv.Itoa(r.http))...)...)
	cmd.Env = []string{"HOME=" + r.t.TempDir(), "PATH=" + os.Getenv("PATH"), "STELE_TOKEN=" + r.token}
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s%s", what, err, out, &problem)
	}
	return string(out)
}

// above publishes in the parent the DS records that the zone wants now. Another server, which
// replaces the one before, serves the new parent zone.
func (r *rollover) above() {
	r.t.Helper()
	list := exec.CommandContext(r.t.Context(), stele(r.t), "zone", "ds", archiveZone, "--server", "http://127.0.0.1:"+strconv.Itoa(r.http))
	list.Env = []string{"HOME=" + r.t.TempDir(), "PATH=" + os.Getenv("PATH"), "STELE_TOKEN=" + r.token}
	ds, _ := list.Output() // there are none if the zone is to go without
	r.serial++
	file := filepath.Join(r.tree.folder, "zoneexample.")
	keys := file + ".keys"
	writeFile(r.t, file, fmt.Sprintf("$TTL 1\n@ SOA ns.other.test. mail.other.test. %d 3600 600 86400 1\n@ NS ns.other.test.\n%s", 1+r.serial, r.delegation(string(ds))), 0o644)
	r.tree.run("dnssec-signzone", "-q", "-S", "-z", "-K", keys, "-d", keys, "-o", "example.", "-f", file+".signed", file)
	next := bind.start(r.t, r.tree.zones...)
	r.tree.mu.Lock()
	r.tree.routes[len(r.tree.routes)-1].server = next
	r.tree.mu.Unlock()
}

// pass lets so much time pass that no cache has anything from before, and all
// has been asked for since.
func (r *rollover) pass() {
	r.t.Helper()
	time.Sleep(rollWait)
	for end := r.rounds.Load() + 3; r.rounds.Load() < end; {
		time.Sleep(50 * time.Millisecond)
	}
}

// watch asks for everything until stop is called.
func (r *rollover) watch() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	questions := slices.DeleteFunc(slices.Clone(archiveQuestions), func(q question) bool { return !strings.HasSuffix(q.name, archiveZone) })
	all.Go(func() {
		for {
			for _, q := range questions {
				select {
				case <-done:
					return
				default:
					r.look(q)
				}
			}
			r.rounds.Add(1)
		}
	})
	return func() {
		close(done)
		all.Wait()
	}
}

// look asks the validator, and notes what it finds wrong.
func (r *rollover) look(q question) {
	m := new(dns.Msg).SetQuestion(q.name, dns.StringToType[q.kind]).SetEdns0(1232, true)
	m.AuthenticatedData = true
	answer, _, err := (&dns.Client{Timeout: 20 * time.Second}).Exchange(m, r.validate.addr)
	if err == nil && answer.Rcode != dns.RcodeServerFailure && answer.AuthenticatedData {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf("after %s: %s %s: %v %v", r.what, q.name, q.kind, err, answer))
}

// sound makes sure that the validator found no problem.
func (r *rollover) sound() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		r.t.Fatalf("%d answers were not secure; the first:\n%s", len(r.wrong), r.wrong[0])
	}
}

// TestRollOver rolls keys of all kinds while a validator is asked for everything without
// a pause: each answer is secure at each moment. The steps are forced, since five minutes
// are for servers that share a registry; the test waits until caches have expired.
func TestRollOver(t *testing.T) {
	for _, test := range []struct {
		sign  []string
		roles []string
	}{
		{[]string{"--mode", "online", "--split"}, []string{"zsk", "ksk"}},
		{[]string{"--mode", "transfer"}, []string{"csk"}},
	} {
		t.Run(strings.Join(test.sign, " "), func(t *testing.T) {
			t.Parallel()
			r := newRollover(t, test.sign...)
			stop := sync.OnceFunc(r.watch())
			defer stop()
			r.pass()
			for _, role := range test.roles {
				r.do("a new "+role, "roll", archiveZone, role)
				r.pass()
				if role != "zsk" {
					r.above()
					r.pass()
				}
				r.do("the new "+role+" is active", "roll", archiveZone, role, "--next", "--ds-published", "--force")
				r.pass()
				if role != "zsk" {
					r.above()
					r.pass()
				}
				r.do("the old "+role+" is gone", "roll", archiveZone, role, "--next", "--force")
				r.pass()
				r.sound()
			}
			r.do("another algorithm", "roll", archiveZone, "--algorithm", "ed25519")
			r.pass()
			r.do("its keys are published", "roll", archiveZone, "--next", "--force")
			r.pass()
			r.above()
			r.pass()
			r.do("its keys are active", "roll", archiveZone, "--next", "--ds-published", "--force")
			r.pass()
			r.above()
			r.pass()
			r.do("the old keys leave", "roll", archiveZone, "--next", "--force")
			r.pass()
			if out := r.do("the old keys are gone", "roll", archiveZone, "--next", "--force"); !strings.Contains(out, "ed25519") || strings.Contains(out, "leaving") {
				t.Errorf("the keys are\n%s", out)
			}
			r.pass()
			stop()
			r.sound()
			r.withoutSignatures()
		})
	}
}

// withoutSignatures turns signing off: the zone is insecure then, and never bogus.
func (r *rollover) withoutSignatures() {
	r.t.Helper()
	r.do("its DS records are taken back", "sign", archiveZone, "--mode", "off")
	never := func(when string) {
		r.t.Helper()
		for range 10 {
			if got := unboundVerdict(r.t, r.validate, "a.001.ab1.paradisec.example.", dns.TypeNAPTR); got != "secure" && got != "insecure" {
				r.t.Errorf("%s: %s", when, got)
			}
			time.Sleep(rollTTL / 5)
		}
	}
	never("the parent has DS records")
	r.above()
	time.Sleep(rollWait)
	never("the parent has none")
	r.do("it goes without", "sign", archiveZone, "--mode", "off", "--ds-removed", "--force")
	never("it goes without")
	if got := unboundVerdict(r.t, r.validate, "a.001.ab1.paradisec.example.", dns.TypeNAPTR); got != "insecure" {
		r.t.Errorf("without signatures it is %s", got)
	}
}

// Validators notice steps that are forced before their time, so the watch above can fail.
func TestRollOverTooSoon(t *testing.T) {
	t.Parallel()
	r := newRollover(t, "--mode", "online")
	stop := sync.OnceFunc(r.watch())
	defer stop()
	r.pass()
	r.sound()
	r.do("a new key", "roll", archiveZone)
	r.do("it is active", "roll", archiveZone, "--next", "--force")
	r.do("the old one is gone", "roll", archiveZone, "--next", "--force")
	r.pass() // the parent knows nothing of it
	stop()
	if len(r.wrong) == 0 {
		t.Error("the parent points at a key that is gone, and the validator finds everything secure")
	}
}
