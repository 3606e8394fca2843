package pebble

// Hold keeps other processes from opening the store in a folder, without opening it:
// for a caller that replaces its files. Unavailable if another process has it open, as
// in [Open].
func Hold(folder string, o Options) (release func() error, err error) {
	s, err := newStore(folder, o)
	if err != nil {
		return nil, err
	}
	return s.lock()
}
