package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/internal/disk"
)

// A bundle of a server comes to FILE.download. FILE.download.state is what the server needs to go on with it. Both are gone when the
// bundle is complete and checked.
const (
	downloadSuffix = ".download"
	stateSuffix    = ".download.state"
)

// maxBundleTries is how often the server is asked again without a byte that is new.
const maxBundleTries = 4

// bundleDownload is a bundle that comes from a server.
type bundleDownload struct {
	p     *program
	r     *remote.Registry
	query remote.BundleQuery
	file  string
}

// bundleFrom gets a bundle from a server, and checks it.
func (p *program) bundleFrom(ctx context.Context, r *remote.Registry, f *bundleFlags, args []string, o bundle.Options) error {
	d := &bundleDownload{p: p, r: r, file: f.file, query: remote.BundleQuery{Prefixes: args, Gzip: isGzip(f.file)}}
	if f.again {
		if err := d.forget(); err != nil {
			return err
		}
	}
	if err := d.get(ctx); err != nil {
		if info, there := os.Stat(f.file + downloadSuffix); there == nil && info.Size() == 0 {
			err = errors.Join(err, d.forget()) // the server refused it
		}
		if ctx.Err() != nil {
			return refuse("bundle", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
		}
		return err
	}
	report, size, err := d.check(ctx, o)
	if err != nil {
		return err
	}
	// That it was checked is noted if the server can: an older one does not know how, and a sealed registry notes nothing.
	if err := r.NoteChecked(ctx, hex.EncodeToString(report.Manifest[:])); err != nil && stele.KindOf(err) != stele.NotFound && stele.KindOf(err) != stele.Conflict {
		fmt.Fprintf(p.stderr, "stele: the bundle is whole, but that could not be noted at the server: %s\n", printable(err.Error()))
	}
	if p.json {
		return p.printObject(bundleWritten{f.file, report.Head, report.Counts, size, hex.EncodeToString(report.Manifest[:])})
	}
	return p.say("%s has %s records in %s versions, up to change %s\n", printable(f.file), grouped(int64(report.Counts.Records)), grouped(int64(report.Counts.Versions)), grouped(int64(report.Head.Changes)))
}

// forget removes what an earlier run left.
func (d *bundleDownload) forget() error {
	for _, suffix := range []string{downloadSuffix, stateSuffix} {
		if err := os.Remove(d.file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return disk.FileError(err)
		}
	}
	return nil
}

// get downloads the bundle, or the rest of it. If the connection breaks it goes on.
func (d *bundleDownload) get(ctx context.Context) error {
	out, err := os.OpenFile(d.file+downloadSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return disk.FileError(err)
	}
	defer func() { _ = out.Close() }()
	bar := d.p.newProgress("bundle", "bytes", 0, nil)
	defer bar.End()
	for tries := 1; ; tries++ {
		came, err := d.part(ctx, out, bar.Add)
		switch {
		case err == nil:
			if err := out.Sync(); err != nil {
				return disk.FileError(err)
			}
			return nil
		case ctx.Err() != nil:
			return err
		case stele.KindOf(err) == stele.Conflict && d.query.State != "": // of another server, or of a registry that was restored
			fmt.Fprintln(d.p.stderr, "stele: the server can't go on with the bundle that was begun, and begins anew")
			if err := errors.Join(out.Truncate(0), os.Remove(d.file+stateSuffix)); err != nil {
				return disk.FileError(err)
			}
		case stele.KindOf(err) != stele.Unavailable || tries >= maxBundleTries && came == 0:
			return err
		}
		if came > 0 {
			tries = 1
		}
	}
}

// part downloads what is left, as far as it comes.
func (d *bundleDownload) part(ctx context.Context, out *os.File, add func(int)) (came int64, err error) {
	d.query.State, d.query.Offset = "", 0
	if state, err := disk.ReadSome(d.file+stateSuffix, 1<<16); err == nil {
		end, err := out.Seek(0, io.SeekEnd)
		if err != nil {
			return 0, disk.FileError(err)
		}
		d.query.State, d.query.Offset = string(state), end
	}
	in, state, err := d.r.Bundle(ctx, d.query)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	if d.query.State == "" {
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			return 0, disk.FileError(err)
		}
		if err := errors.Join(out.Truncate(0), os.RemoveAll(d.file+stateSuffix)); err != nil {
			return 0, disk.FileError(err)
		}
		if state != "" {
			if err := disk.CreatePrivate(d.file+stateSuffix, []byte(state)); err != nil {
				return 0, disk.FileError(err)
			}
		}
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := in.Read(buf)
		if _, werr := out.Write(buf[:n]); werr != nil {
			return came, disk.FileError(werr)
		}
		came += int64(n)
		add(n)
		switch {
		case errors.Is(err, io.EOF):
			return came, nil
		case err != nil:
			return came, err
		}
	}
}

// check checks what came, and makes it the file. What is not whole is removed.
func (d *bundleDownload) check(ctx context.Context, o bundle.Options) (*bundle.Report, int64, error) {
	in, err := os.Open(d.file + downloadSuffix)
	if err != nil {
		return nil, 0, disk.FileError(err)
	}
	defer func() { _ = in.Close() }()
	bar := d.p.newProgress("check", "versions", 0, nil)
	o.Progress = bar.Add
	report, err := bundle.Read(ctx, in, o)
	bar.End()
	switch {
	case ctx.Err() != nil:
		return nil, 0, refuse("bundle", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case err != nil:
		return nil, 0, errors.Join(refuse("bundle", stele.Unavailable, "bundle.download-damaged", "what came from the server is not whole, and was removed; give the same command again: {cause}", err), d.forget())
	}
	info, err := in.Stat()
	if err != nil {
		return nil, 0, disk.FileError(err)
	}
	if err := os.Rename(d.file+downloadSuffix, d.file); err != nil {
		return nil, 0, disk.FileError(err)
	}
	return report, info.Size(), d.forget()
}
