package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stele-id/stele"
)

// isRunning reports whether there is such a process.
func isRunning(pid int) bool {
	return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// ownerOf returns the user that owns a file.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// descriptorLimit returns how many files a process may have open at once.
func descriptorLimit(pid int) (uint64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Max open files"); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return strconv.ParseUint(words[0], 10, 64)
			}
		}
	}
	return 0, stele.Messagef("doctor.open-files-not-told", "it does not say")
}

// disciplined reports whether a time service keeps the kernel's clock right, and by how much
// it may be wrong at most. Known is false where the kernel does not say.
func disciplined() (right bool, wrong time.Duration, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, 0, false
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, time.Duration(t.Maxerror) * time.Microsecond, true
}
