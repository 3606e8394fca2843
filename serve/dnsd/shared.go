package dnsd

// InvalidateAll says that nobody knows what other processes have committed: everything
// is read again. See Invalidate.
func (z *Zones) InvalidateAll() {
	z.mu.Lock()
	z.last, z.chains = nil, nil
	z.mu.Unlock()
	z.applied.end()
	z.InvalidateNamespaces()
}

// end ends keeping track: there are no chains any more of which something is known.
func (a *applied) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on, a.upTo, a.done, a.older, a.by, a.since = false, 0, nil, nil, 0, 0
}
