package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgres is a server of its own, with a new and empty database in our folder. It
// has the settings that the package brings, which are durable ones, and the order of
// bytes, in which its index is built fastest.
type postgres struct {
	bin     string // folder of its programs
	version string
	folder  string
	as      *syscall.Credential // the user that runs it; nil: ours
	pid     int
	records string // file for COPY
}

// startPostgres starts a server, and writes n records for it.
func startPostgres(ctx context.Context, folder string, n int) (*postgres, error) {
	p := &postgres{folder: filepath.Join(folder, "postgres"), records: filepath.Join(folder, "copy.txt")}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no PostgreSQL to compare with; install Debian's package postgresql, or run make bench")
	}
	p.bin = filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) }))
	p.version = fmt.Sprintf("PostgreSQL %d", majorVersion(p.bin+"/initdb"))
	if err := os.Mkdir(p.folder, 0o700); err != nil {
		return nil, err
	}
	if err := p.chooseUser(); err != nil {
		return nil, err
	}
	progress("starting %s, and writing %d records for it", p.version, n)
	if err := writeRecords(p.records, n, true); err != nil {
		return nil, err
	}
	data := filepath.Join(p.folder, "data")
	if err := p.run(ctx, "initdb", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username=bench", data); err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("-c listen_addresses= -c unix_socket_directories='%s'", p.folder)
	if err := p.run(ctx, "pg_ctl", "start", "-w", "-D", data, "-l", filepath.Join(p.folder, "log"), "-o", settings); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	p.pid, err = strconv.Atoi(string(first))
	return p, err
}

// startStandby starts a standby that must have a commit before it is acknowledged.
func (p *postgres) startStandby(ctx context.Context) (_ *postgres, err error) {
	b := &postgres{bin: p.bin, version: p.version, folder: p.folder + "-standby", as: p.as}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return nil, err
	}
	if p.as != nil {
		if err := os.Chown(b.folder, int(p.as.Uid), int(p.as.Gid)); err != nil {
			return nil, err
		}
	}
	progress("starting a standby")
	data := filepath.Join(b.folder, "data")
	if err := b.run(ctx, "pg_basebackup", "--host="+p.folder, "--username=bench", "--pgdata="+data, "--write-recovery-conf", "--checkpoint=fast"); err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("-c listen_addresses= -c unix_socket_directories='%s'", b.folder)
	if err := b.run(ctx, "pg_ctl", "start", "-w", "-D", data, "-l", filepath.Join(b.folder, "log"), "-o", settings); err != nil {
		return nil, err
	}
	return b, p.sql(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
}

// majorVersion returns the number in /usr/lib/postgresql/15/bin/initdb.
func majorVersion(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// chooseUser finds another user if we are root: PostgreSQL refuses to run as root.
func (p *postgres) chooseUser() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(p.folder, int(uid), int(gid))
}

// run runs one of PostgreSQL's programs. The server that one of them starts must not
// keep our standard output, so what is printed goes to a file.
func (p *postgres) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir = p.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	out, err := os.Create(filepath.Join(p.folder, name+".out"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(text))
	}
	return nil
}

// stop ends the server.
func (p *postgres) stop() error {
	return p.run(context.Background(), "pg_ctl", "stop", "-w", "-m", "fast", "-D", filepath.Join(p.folder, "data"))
}

// sql runs statements, one after the other.
func (p *postgres) sql(ctx context.Context, statements ...string) error {
	return p.sqlIn(ctx, "postgres", statements...)
}

// sqlIn runs them in a database.
func (p *postgres) sqlIn(ctx context.Context, database string, statements ...string) error {
	args := []string{"--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--host=" + p.folder, "--username=bench", "--dbname=" + database}
	for _, s := range statements {
		args = append(args, "--command="+s)
	}
	return p.run(ctx, "psql", args...)
}

// copyInto copies the records into a new table: one with its primary key, or one that
// gets it after that. The server reads the file itself, which is the fastest way.
func (p *postgres) copyInto(ctx context.Context, keyFirst bool) (c cost, err error) {
	if err := p.sql(ctx, "DROP TABLE IF EXISTS records", "CHECKPOINT"); err != nil {
		return c, err
	}
	copied := fmt.Sprintf("COPY records FROM '%s'", p.records)
	statements := []string{"CREATE TABLE records (id text PRIMARY KEY, body jsonb)", copied}
	if !keyFirst {
		statements = []string{"CREATE TABLE records (id text, body jsonb)", copied, "ALTER TABLE records ADD PRIMARY KEY (id)"}
	}
	before := usedBy(p.pid)
	begin := time.Now()
	err = p.sql(ctx, statements...)
	c.wall = time.Since(begin)
	c.cpu = usedBy(p.pid) - before
	return c, err
}

// usedBy returns the CPU time that a process and its children have used, those that
// have ended included.
func usedBy(pid int) (used time.Duration) {
	const tick = time.Second / 100 // USER_HZ, which Linux has everywhere
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended just now
		}
		// The name of the program, in parentheses, may hold anything. After it come the
		// state, the parent, and at 11 to 14 the times (proc(5)).
		_, rest, _ := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		last := 13 // user and system time
		if filepath.Base(filepath.Dir(path)) == strconv.Itoa(pid) {
			last = 15 // and that of children
		} else if fields[1] != strconv.Itoa(pid) {
			continue
		}
		for _, f := range fields[11:last] {
			ticks, _ := strconv.ParseInt(f, 10, 64)
			used += time.Duration(ticks) * tick
		}
	}
	return used
}
