package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	counting "github.com/stele-id/stele/usage"
)

func (p *program) usageImportCommand() *cobra.Command {
	var im counting.LogImporter
	var format, robots, countries string
	var addresses bool
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Count the log files of other servers",
		Long: `Import counts the lines of log files of nginx, Apache and other servers that write the
formats "combined" and "common", by the rules by which a server counts its own answers.
FILE may be compressed with gzip or zstd, and - is standard input.

Redirects of registered names are resolutions, answers 200 about them are descriptions,
and 404 are failures of their namespace. HEAD, other answers and users that the server
knew by name do not count. The time is that of the lines. Lines that are out of order by up
to two minutes are put into order.

A file is known by its content: lines that were counted do not count again, whatever the
file is called. If an import is interrupted or killed, give the same command again. If lines
were added to a file, give it again: only these are counted. A last line without an end
waits until it has one. Readers of one file are not known in the next: of a log that is
rotated within a day, a reader in two files counts as two visitors. Put such files together
first, in their order. Give the log of a time at which this server counted itself only if
its own answers are not in it.

The registry is a folder or a database. A server that has a folder open must be stopped, or
is sent the files with --server: an administrator may. It counts them by its own lists of robots,
and by the same rules. Addresses do not travel: in their place are hashes by which readers
can be told apart in this file only, so countries are not counted, and --cut-addresses is
what tells readers of one network apart or not: the setting usage-cut-addresses of the server
is for addresses. Queries do not travel either, except those of /uri-res/, which are names.
--send-addresses sends the lines as they are. If the connection breaks for long, give the
same command again.`,
		Example: `  stele usage import --dry-run access.log
  stele usage import --format combined /var/log/nginx/access.log.*.gz
  stele usage import --base /resolve/ --host id.example.org access.log`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "flag.log-missing", "which log file? Name one, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format != "combined" && format != "common" {
				return usage.Errorf(cmd, "flag.log-format-unknown", `"{format}" is not a format that is known; there are combined and common`, format)
			}
			im.Combined = format == "combined"
			far, err := p.isRemote(cmd)
			switch {
			case err != nil:
				return err
			case far && (robots != "" || countries != ""):
				return usage.Errorf(cmd, "flag.lists-of-server", "a server has lists of robots and countries of its own; leave out --robots and --countries, see its settings usage-robots and usage-countries")
			case addresses && !far:
				return usage.Errorf(cmd, "flag.addresses-stay", "--send-addresses is for a --server; without one the file stays where it is")
			case far:
				o := apijson.UsageLogOptions{Format: format, Base: im.Base, Host: im.Host, Cut: im.Cut, Masked: !addresses, DryRun: im.DryRun, NewLists: im.NewLists}
				return p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error {
					return p.eachLog(args, func(name string) (*counting.LogSummary, error) { return p.sendLog(ctx, r, o, name) })
				})
			}
			if im.Agents, err = openAgents(robots); err != nil {
				return err
			}
			im.Lists = im.Agents.Digest()
			if countries != "" {
				found, err := counting.OpenCountries(countries)
				if err != nil {
					return err
				}
				im.Country = found.Country
				im.Lists += " " + found.Digest()
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				return p.importLogs(ctx, r, &im, args)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "combined", "format of the lines: combined or common")
	flags.StringVar(&im.Base, "base", "/", "what stands before names in the `path` of a request")
	flags.StringVar(&im.Host, "host", "", "`host` of the server that wrote the file; its own pages are not counted as referring ones")
	flags.StringVar(&robots, "robots", "", "`file` COUNTER_Robots_list.json, as in the setting usage-robots")
	flags.StringVar(&countries, "countries", "", "`file` with the countries of addresses, as in the setting usage-countries")
	flags.BoolVar(&im.Cut, "cut-addresses", false, "tell readers apart by their network only, as the setting usage-cut-addresses does")
	flags.BoolVar(&addresses, "send-addresses", false, "with --server: send the lines as they are, with the addresses of readers")
	flags.BoolVar(&im.NewLists, "new-lists", false, "finish files of which a part was counted with other lists of robots or countries")
	flags.BoolVar(&im.DryRun, "dry-run", false, "print what would be counted, and write nothing")
	usage.Choices(cmd, "format", "combined", "common")
	return cmd
}

// openAgents reads what user agents are.
func openAgents(robots string) (*counting.Agents, error) {
	if robots == "" {
		return counting.NewAgents(nil)
	}
	file, err := os.Open(robots)
	if err != nil {
		return nil, refuse("usage", stele.Unavailable, "usage.robots-not-read", "the list of robots can't be read: {cause}", err)
	}
	agents, err := counting.NewAgents(file)
	return agents, errors.Join(err, file.Close())
}

// sendLog has a server count a file.
func (p *program) sendLog(ctx context.Context, r *remote.Registry, o apijson.UsageLogOptions, name string) (sum *counting.LogSummary, err error) {
	file, name, err := p.openLog(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := bulk.NewFile(name, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := file.Stat(); err == nil {
		f.Size = info.Size()
	}
	bar := p.newProgress("usage import", "bytes", f.Size, f.Read.Load)
	defer func() { bar.End() }()
	var in io.Reader = f.Text()
	if o.Masked {
		in = counting.MaskLog(in, o.Cut)
	}
	o.Name = name
	return r.CountLog(ctx, in, o, func(n int) { bar.Add(n) }, func(int) {})
}

// importLogs counts files.
func (p *program) importLogs(ctx context.Context, r *registry.Registry, im *counting.LogImporter, files []string) error {
	access.CountsFor(r, im)
	im.Now, im.Log = p.now, p.logger()
	return p.eachLog(files, func(name string) (*counting.LogSummary, error) { return p.importLog(ctx, im, name) })
}

// eachLog counts files, and prints what became of their lines.
func (p *program) eachLog(files []string, count func(name string) (*counting.LogSummary, error)) error {
	for _, name := range files {
		sum, err := count(name)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				err = refuse("usage", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
			}
			return err
		}
		if p.json {
			err = p.printLine(sum)
		} else {
			err = p.say("%s", logSummary(sum))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// importLog counts a file. It is opened once, and read twice: meanwhile another program may give its name to another file.
func (p *program) importLog(ctx context.Context, im *counting.LogImporter, name string) (*counting.LogSummary, error) {
	file, name, err := p.openLog(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var bar *progress.Bar
	defer func() {
		if bar != nil {
			bar.End()
		}
	}()
	im.Progress = func(lines int) { bar.Add(lines) }
	return im.Import(ctx, name, func() (io.ReadCloser, error) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		f, err := bulk.NewFile(name, file)
		if err != nil {
			return nil, err
		}
		if info, err := file.Stat(); err == nil {
			f.Size = info.Size()
		}
		if bar != nil {
			bar.End()
		}
		bar = p.newProgress("usage import", "lines", f.Size, f.Read.Load)
		return struct {
			io.Reader
			io.Closer
		}{f.Text(), f}, nil
	})
}

// openLog opens a file that can be read twice: of standard input and of pipes it is a copy. It also returns the name for messages.
func (p *program) openLog(name string) (*os.File, string, error) {
	if name == "-" {
		file, err := spool(p.stdin)
		return file, "standard input", err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, "", disk.FileError(err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, "", errors.Join(disk.FileError(err), file.Close())
	case info.IsDir():
		return nil, "", errors.Join(refuse("usage", stele.Invalid, "import.file-is-a-folder", "{path} is a folder; name a file", name), file.Close())
	case info.Mode().IsRegular():
		return file, name, nil
	}
	copied, err := spool(file)
	return copied, name, errors.Join(err, file.Close())
}

// spool copies into a file without a name, which is gone when the program ends.
func spool(in io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "stele-log-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := io.Copy(file, in); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// logSummary says what became of the lines of a file.
func logSummary(s *counting.LogSummary) string {
	file := printable(s.File)
	n := func(count int) string { return grouped(int64(count)) }
	var text string
	switch {
	case s.Lines == 0 && s.Before > 0, s.Lines == 0 && !s.Incomplete:
		text = fmt.Sprintf("%s: nothing new to count\n", file)
	default:
		text = fmt.Sprintf("%s: %s lines: %s counted, %s double clicks, %s by robots, %s failures\n", file, n(s.Lines), n(s.Counted), n(s.Doubles), n(s.Robots), n(s.Failures))
		text += fmt.Sprintf("  not counted: %s of names that are not here, %s not of names, %s other requests, %s unreadable\n", n(s.Unknown), n(s.NotNames), n(s.NotCounted), n(s.Unreadable))
	}
	if s.Before > 0 {
		text += fmt.Sprintf("  %s lines were counted before\n", n(s.Before))
	}
	if len(s.First) > 0 {
		text += fmt.Sprintf("  the first unreadable lines: %s\n", numbers(s.First))
	}
	if s.Late > 0 {
		text += fmt.Sprintf("  %s times the file went back by more than two minutes\n", n(s.Late))
	}
	if s.Overflow > 0 {
		text += fmt.Sprintf("  %s uses were counted without the rules for double clicks and sessions: there are too many readers in an hour\n", grouped(int64(s.Overflow)))
	}
	if s.LeftOut > 0 {
		text += fmt.Sprintf("  %s figures could not be added, because what is kept is damaged; the log says which\n", grouped(int64(s.LeftOut)))
	}
	if s.Incomplete {
		text += "  the last line has no end, and was not counted\n"
	}
	if s.DryRun {
		text += "  nothing was written\n"
	}
	return text
}

func numbers(list []int) string {
	text := ""
	for i, n := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	return text
}
