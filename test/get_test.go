package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// signedArchive is one whose things are signed, on a real web server and a real FTP
// server, in zones that are signed.
type signedArchive struct {
	*archive
	site    string // folder of both servers
	web     string // URL of nginx
	ftp     string // URL of vsftpd
	key     string // file with the private key
	anchors string // file with the keys of the zones
	dns     string // address of our name server
}

// recording is what the archive has. The slow path of nginx sends it within two seconds.
func recording() []byte {
	b := make([]byte, 1<<20)
	chance := rand.NewChaCha8([32]byte{7})
	_, _ = chance.Read(b)
	return b
}

func newSignedArchive(t *testing.T) *signedArchive {
	t.Helper()
	folder := t.TempDir()
	p := &signedArchive{
		archive: &archive{t: t, data: filepath.Join(folder, "data"), http: freePort(t)},
		site:    filepath.Join(folder, "site"), key: filepath.Join(folder, "signing.pem"), anchors: filepath.Join(folder, "anchors.txt"),
	}
	writeFile(t, filepath.Join(p.site, "a.wav"), string(recording()), 0o644)
	p.startWeb()
	p.startFTP()
	p.stele("zone", "add", "urn:paradisec", "--zone", archiveZone, "--layout", "names", "--parts", "3",
		"--ns", "ns1.paradisec.example=127.0.0.1", "--ns", "ns2.example.net", "--mailbox", "a@paradisec.example", "--resolver", "localhost:"+strconv.Itoa(p.http))
	p.stele("zone", "add", "--root", archiveRoot, "--ns", "ns1.urn.example=127.0.0.1", "--ns", "ns.example.net", "--mailbox", "root@example.net")
	p.stele("key", "new", "urn:paradisec", "--algorithm", "ecdsa", "-o", p.key)
	for name, to := range map[string]string{"web": p.web + "/a.wav", "slow": p.web + "/slow/a.wav", "ftp": p.ftp + "/a.wav"} {
		p.stele("register", "urn:paradisec:AB1:001:"+name, "--to", to)
		p.stele("sign", "urn:paradisec:AB1:001:"+name, filepath.Join(p.site, "a.wav"), "--key", p.key, "--type", "audio/wav")
	}
	anchors := ""
	for _, zone := range []string{archiveZone, archiveRoot} {
		p.stele("zone", "sign", zone, "--mode", "online")
		anchors += p.stele("zone", "ds", zone)
	}
	writeFile(t, p.anchors, anchors, 0o644)
	p.dns = p.serve().addr
	return p
}

// startWeb runs nginx, with a way to get things slowly.
func (p *signedArchive) startWeb() {
	folder := p.t.TempDir()
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(p.t)))
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // only the test's user can read its folders
	}
	writeFile(p.t, filepath.Join(folder, "nginx.conf"), fmt.Sprintf(`daemon off;
%s
pid %[2]s/pid;
error_log stderr;
events {}
http {
	access_log off;
	types { audio/wav wav; }
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	server { listen %[3]s; root %[4]s; location /slow/ { alias %[4]s/; limit_rate 512k; } }
}
`, user, folder, at, p.site), 0o600)
	p.web = "http://" + at
	p.startAt(at, exec.Command(serverProgram("nginx"), "-p", folder, "-c", filepath.Join(folder, "nginx.conf")))
}

// startFTP runs vsftpd, as the user of the test.
func (p *signedArchive) startFTP() {
	port := freePort(p.t)
	config := filepath.Join(p.t.TempDir(), "vsftpd.conf")
	writeFile(p.t, config, fmt.Sprintf(`listen=YES
listen_address=127.0.0.1
listen_port=%d
background=NO
anonymous_enable=YES
local_enable=NO
run_as_launching_user=YES
anon_root=%s
secure_chroot_dir=%s
seccomp_sandbox=NO
xferlog_enable=NO
`, port, p.site, p.t.TempDir()), 0o600)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p.ftp = "ftp://" + at
	p.startAt(at, exec.Command(serverProgram("vsftpd"), config))
}

// startAt starts a server, and waits until it answers.
func (p *signedArchive) startAt(at string, cmd *exec.Cmd) {
	p.t.Helper()
	said, _, err := runBeside(p.t, cmd)
	if err != nil {
		p.t.Fatalf("%v; 'make needs' installs it", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%v: %v\n%s", cmd, err, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// getting is the command line of a reader who has nothing but the name and the keys of the
// zones.
func (p *signedArchive) getting(name, file string, more ...string) []string {
	return append([]string{"get", "urn:paradisec:AB1:001:" + name, "--dns", p.dns, "--root", archiveRoot, "--anchors", p.anchors, "--verify", "--private-addresses", "allow", "-o", file}, more...)
}

// TestGet: what is signed in signed zones is fetched whole and verified, over HTTP and over
// FTP; a program that was killed resumes; changed bytes are detected.
func TestGet(t *testing.T) {
	p := newSignedArchive(t)
	folder := t.TempDir()
	for _, name := range []string{"web", "ftp"} {
		file := filepath.Join(folder, name)
		out, err := runStele(t, p.getting(name, file)...)
		if err != nil || !strings.Contains(out, "\nverified: SHA-256 and size match; signed ") || !strings.Contains(out, "of _n2s.paradisec.example; key authenticated by DNSSEC\n") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, recording()) {
			t.Errorf("%s: something else came, %v", name, err)
		}
	}
	p.keptBack(filepath.Join(folder, "kept"))
	p.killed(filepath.Join(folder, "slow"))
	p.changed(folder)
}

// keptBack: an attacker on the network path who withholds only the keys does not make the
// program take them from another server. The program says that the user may try again.
func (p *signedArchive) keptBack(file string) {
	t := p.t
	for about, instead := range map[string]func(q *dns.Msg) *dns.Msg{
		"SERVFAIL": func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure) },
		"REFUSED":  func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) },
		"circle": func(q *dns.Msg) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			name := q.Question[0].Name
			m.Answer = []dns.RR{&dns.CNAME{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 60}, Target: name}}
			return m
		},
	} {
		at := p.between(instead)
		for _, more := range [][]string{nil, {"--allow-unauthenticated-key"}, {"--server", "http://localhost:" + strconv.Itoa(p.http)}} {
			args := p.getting("web", file, more...)
			args[slices.Index(args, "--dns")+1] = at
			out, err := runStele(t, args...)
			if err == nil || !strings.Contains(err.Error(), "exit status 5") || strings.Contains(out, "verified") {
				t.Errorf("%s %q: %v\n%s", about, more, err, out)
			}
			if left, _ := filepath.Glob(file + "*"); left != nil {
				t.Errorf("%s %q: %q are left", about, more, left)
			}
		}
	}
}

// between is a name server that passes on what ours says, except the keys. It returns its
// address.
func (p *signedArchive) between(instead func(q *dns.Msg) *dns.Msg) string {
	t := p.t
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		if strings.HasPrefix(strings.ToLower(q.Question[0].Name), "_n2s.") {
			_ = w.WriteMsg(instead(q))
			return
		}
		c := &dns.Client{Net: w.LocalAddr().Network()}
		if m, _, err := c.Exchange(q, p.dns); err == nil {
			_ = w.WriteMsg(m)
		}
	})
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, network := range []string{"udp", "tcp"} {
		begun := make(chan struct{})
		one := &dns.Server{Addr: at, Net: network, Handler: handler, NotifyStartedFunc: func() { close(begun) }}
		failed := make(chan error, 1)
		running.Go(func() { failed <- one.ListenAndServe() })
		select {
		case <-begun:
		case err := <-failed:
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = one.Shutdown() })
	}
	return at
}

// killed kills the program while it fetches something, and has another resume.
func (p *signedArchive) killed(file string) {
	t := p.t
	cmd := exec.Command(stele(t), p.getting("slow", file)...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		info, err := os.Stat(file + ".part")
		if err == nil && info.Size() > 64<<10 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing comes")
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Stat(file); err == nil {
		t.Fatal("it was faster than it could be")
	}
	out, err := runStele(t, p.getting("slow", file)...)
	if err != nil || !strings.Contains(out, "were there already\nverified: ") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, recording()) {
		t.Errorf("something else came, %v", err)
	}
}

// changed changes what was signed: one byte, or its length. No file gets its final name.
func (p *signedArchive) changed(folder string) {
	t := p.t
	other := recording()
	other[len(other)/2] ^= 1
	for about, body := range map[string][]byte{"a byte": other, "longer": append(recording(), 0), "shorter": recording()[:1000], "nothing": nil} {
		if err := os.WriteFile(filepath.Join(p.site, "a.wav"), body, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"web", "ftp"} {
			file := filepath.Join(folder, "changed-"+name)
			out, err := runStele(t, p.getting(name, file)...)
			if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, "the target has changed since it was signed") {
				t.Errorf("%s, %s: %v\n%s", about, name, err, out)
			}
			if left, _ := filepath.Glob(file + "*"); left != nil {
				t.Errorf("%s, %s: %q are left", about, name, left)
			}
		}
	}
}
