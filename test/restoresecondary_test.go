package test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// restorable is our server with BIND as its secondary. The server can be stopped, and
// started again with the same ports on another folder.
type restorable struct {
	*primary
	bind *nameServer
	stop func()
}

// newRestorable runs both, with the secondary among those that are notified of changes.
func newRestorable(t *testing.T) *restorable {
	t.Helper()
	r := &restorable{primary: &primary{archive: newArchive(t)}}
	r.makeKeys()
	r.nameServer = &nameServer{"Stele", "", freePort(t)}
	r.addr = "127.0.0.1:" + strconv.Itoa(r.port)
	r.metrics = "http://127.0.0.1:" + strconv.Itoa(freePort(t)) + "/metrics"
	r.start(r.data)
	// It polls once an hour only, so it transfers only after a NOTIFY.
	r.bind = r.secondaries()[2].start(t, zoneFile{zone: archiveZone}, zoneFile{zone: archiveRoot})
	r.notified([]*nameServer{r.bind})
	return r
}

// start serves a folder at the ports of the primary.
func (r *restorable) start(data string) {
	r.t.Helper()
	cmd := exec.Command(stele(r.t), "serve", "--json", "--data", data, "--dns-rate", "0", "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8",
		"--dns", r.addr, "--http", "127.0.0.1:"+strconv.Itoa(r.http), "--metrics", strings.TrimSuffix(strings.TrimPrefix(r.metrics, "http://"), "/metrics"))
	cmd.Env = []string{"HOME=" + r.t.TempDir()}
	read, write, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = write
	said, ended, err := runBeside(r.t, cmd)
	_ = write.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil || !json.Valid([]byte(line)) {
		r.t.Fatalf("%q, %v\n%s", line, err, said)
	}
	r.stop = func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			r.t.Fatal(err)
		}
		<-ended
	}
}

// remote runs the program on the server.
func (r *restorable) remote(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), stele(r.t), append(args, "--server", "http://127.0.0.1:"+strconv.Itoa(r.http))...)
	cmd.Env = []string{"HOME=" + r.t.TempDir(), "PATH=" + os.Getenv("PATH"), "STELE_TOKEN=" + r.token}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("stele %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// transfer asks the primary for a zone, with the key of secondaries: whole, or what came
// after a serial if that is not 0. It returns the records as they came.
func (r *restorable) transfer(zone string, since uint32) (list []dns.RR, err error) {
	r.t.Helper()
	m := new(dns.Msg).SetAxfr(zone)
	if since != 0 {
		m = new(dns.Msg).SetIxfr(zone, since, "ns.example.", "mailbox.example.")
	}
	m.SetTsig(r.key, dns.HmacSHA256, 300, time.Now().Unix())
	in, err := (&dns.Transfer{TsigSecret: map[string]string{r.key: r.secret}}).In(m, r.addr)
	if err != nil {
		return nil, err
	}
	for e := range in {
		if e.Error != nil {
			return nil, e.Error
		}
		list = append(list, e.RR...)
	}
	return list, nil
}

// contents returns the records of a zone that the primary gives, in order, and the SOA
// record once.
func (r *restorable) contents(zone string) []string {
	r.t.Helper()
	list, err := r.transfer(zone, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var texts []string
	for _, rr := range list {
		texts = append(texts, rr.String())
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// withoutSOA returns the records of a zone except its SOA record, which has the serial.
func withoutSOA(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(text string) bool { return strings.Contains(text, "\tSOA\t") })
}

// follows waits until the secondary has the serial of the primary, which is above another
// one, and makes sure that it has the same records.
func (r *restorable) follows(above uint32, when string) (serial uint32) {
	r.t.Helper()
	if serial = r.serial(archiveZone); int32(serial-above) <= 0 {
		r.t.Fatalf("%s: the serial is %d, and was %d before", when, serial, above)
	}
	r.bind.awaitSerial(r.t, archiveZone, serial)
	if ours, theirs := r.contents(archiveZone), r.bind.content(r.t, archiveZone); !slices.Equal(ours, theirs) {
		r.t.Fatalf("%s: BIND has\n%s\nand we have\n%s", when, strings.Join(theirs, "\n"), strings.Join(ours, "\n"))
	}
	return serial
}

// wholeSince makes sure that a secondary which has a serial is sent the whole zone.
func (r *restorable) wholeSince(serial uint32, when string) {
	r.t.Helper()
	list, err := r.transfer(archiveZone, serial)
	if err != nil || len(list) < 3 {
		r.t.Fatalf("%s: IXFR from %d: %v, %v", when, serial, list, err)
	}
	// A difference has the old SOA record in the second place (RFC 1995, section 4).
	if list[1].Header().Rrtype == dns.TypeSOA {
		r.t.Errorf("%s: IXFR from %d is answered with a difference: %v", when, serial, list)
	}
}

// alter changes the zone in every way: it gets a name, loses one, and one leads elsewhere.
func (r *restorable) alter(round string) {
	r.t.Helper()
	r.put("urn:paradisec:NEW:"+round+":A", 0, "https://example.org/new/"+round)
	r.put("urn:paradisec:AB1:009:A", 1, "https://example.org/other/"+round)
	r.ask("POST", "withdraw/urn:paradisec:AB1:009:B", 1, `{"reason":"It is lost."}`)
}

// After a restore a secondary has exactly the restored contents, under a serial that was
// never used before: a real one (BIND), which has later contents when the backup is
// restored. Before zones had bases, it kept a withdrawn name, and missed new ones, forever.
func TestRestoreSecondary(t *testing.T) {
	r := newRestorable(t)
	r.put("urn:paradisec:AB1:009:A", 0, "https://example.org/a")
	r.put("urn:paradisec:AB1:009:B", 0, "https://example.org/b")
	early := r.follows(0, "at first")
	backup := filepath.Join(t.TempDir(), "backup")
	r.remote("backup", backup)
	saved := withoutSOA(r.contents(archiveZone))

	r.alter("1")
	r.put("urn:paradisec:NEW:2:A", 0, "https://example.org/new/2")
	late := r.follows(early, "after changes")
	if slices.Equal(withoutSOA(r.contents(archiveZone)), saved) {
		t.Fatal("the changes changed nothing")
	}
	if list, err := r.transfer(archiveZone, early); err != nil || len(list) < 2 || list[1].Header().Rrtype != dns.TypeSOA {
		t.Fatalf("before the restore a difference is not sent: %v, %v", list, err)
	}

	// The server replaces its registry while BIND runs.
	r.remote("restore", backup, "--confirm", filepath.Base(r.data))
	restored := r.follows(late, "after the restore")
	if got := withoutSOA(r.bind.content(t, archiveZone)); !slices.Equal(got, saved) {
		t.Errorf("BIND has\n%s\nand the backup\n%s", strings.Join(got, "\n"), strings.Join(saved, "\n"))
	}
	if n := r.count("differences"); n != 0 {
		t.Errorf("after the restore %d differences were sent", n)
	}
	for _, serial := range []uint32{early, early + 1, late, restored - 1} {
		r.wholeSince(serial, "after the restore")
	}

	// The same numbers of changes come again with other contents.
	r.put("urn:paradisec:NEW:3:A", 0, "https://example.org/new/3")
	after := r.follows(restored, "after a change in the restored registry")
	if out := r.remote("zone", "check", archiveZone); !strings.Contains(out, "the secondary "+r.bind.addr+" has serial "+strconv.FormatUint(uint64(after), 10)+", as the zone") {
		t.Errorf("zone check prints %s", out)
	}
	r.stop()
	after = r.askedMachine(t, backup, saved, after)
	r.stop()
	r.newMachine(t, backup, saved, after)
}

// restoreTo restores the backup where there is no registry, and returns the folder and what
// the program says.
func (r *restorable) restoreTo(t *testing.T, backup string, flags ...string) (data, said string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "new")
	// A backup has no secret key: the TSIG key of the secondary needs the file of the key.
	key, err := os.ReadFile(r.data + ".key")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, data+".key", string(key), 0o600)
	said, err = runStele(t, append([]string{"restore", backup, "--data", data, "--accept-tokens"}, flags...)...)
	if err != nil {
		t.Fatal(err, said)
	}
	return data, said
}

// askedMachine restores the backup where there is no registry, and asks BIND for its serial:
// the zone is open, and BIND takes it.
func (r *restorable) askedMachine(t *testing.T, backup string, saved []string, late uint32) uint32 {
	data, said := r.restoreTo(t, backup, "--notify-allow", "127.0.0.0/8")
	if !strings.Contains(said, archiveZone+" the secondary "+r.bind.addr+" has serial "+strconv.FormatUint(uint64(late), 10)) {
		t.Errorf("the restore says %s", said)
	}
	r.start(data)
	serial := r.follows(late, "after a restore that asked BIND")
	if got := withoutSOA(r.bind.content(t, archiveZone)); !slices.Equal(got, saved) {
		t.Errorf("BIND has\n%s\nand the backup\n%s", strings.Join(got, "\n"), strings.Join(saved, "\n"))
	}
	return serial
}

// newMachine restores the backup where there is no registry, and the serial of the
// secondaries is unknown: the zone is shut until an administrator raises it.
func (r *restorable) newMachine(t *testing.T, backup string, saved []string, late uint32) {
	data, said := r.restoreTo(t, backup)
	if !strings.Contains(said, archiveZone+" is shut: ") || !strings.Contains(said, "was not asked") {
		t.Errorf("the restore says %s", said)
	}
	r.start(data)
	before := r.bind.content(t, archiveZone)
	for _, since := range []uint32{0, 1, late} {
		if list, err := r.transfer(archiveZone, since); err == nil || !strings.Contains(err.Error(), "bad xfr rcode: 5") {
			t.Errorf("a shut zone is sent to a client with serial %d: %v, %v", since, list, err)
		}
	}
	// Names are still answered: only transfers are shut.
	if r.serial(archiveZone) == 0 {
		t.Error("a shut zone is not answered")
	}
	r.put("urn:paradisec:NEW:4:A", 0, "https://example.org/new/4")
	if now := r.bind.content(t, archiveZone); !slices.Equal(now, before) {
		t.Errorf("BIND took something from a shut zone: %s", strings.Join(now, "\n"))
	}
	r.remote("zone", "raise", archiveZone, "--above", strconv.FormatUint(uint64(late), 10))
	r.follows(late, "after the zone was raised")
	got := withoutSOA(r.bind.content(t, archiveZone))
	fresh := func(text string) bool { return strings.HasPrefix(text, "a.4.new.") }
	if n := len(got); slices.IndexFunc(got, fresh) < 0 || !slices.Equal(slices.DeleteFunc(got, fresh), saved) {
		t.Errorf("BIND has %d records, others than the backup and the new name:\n%s", n, strings.Join(got, "\n"))
	}
}
