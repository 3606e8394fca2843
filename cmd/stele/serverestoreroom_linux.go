package main

import "golang.org/x/sys/unix"

// diskRoom returns how many bytes the disk of a folder has: those that we may write,
// and all.
func diskRoom(folder string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
