-- PostgreSQL database dump
SET client_encoding = 'UTF8';
CREATE TABLE public.handles (handle bytea NOT NULL, idx integer NOT NULL, type bytea, data bytea, ttl_type smallint, ttl integer, "timestamp" integer, refs character varying(255), admin_read boolean, admin_write boolean, pub_read boolean, pub_write boolean);
CREATE TABLE public.nas (na bytea NOT NULL);
INSERT INTO public.handles (handle, idx, type, data, ttl_type, ttl, "timestamp", refs, admin_read, admin_write, pub_read, pub_write) VALUES ('\x32302e3530302e39393939392f4142432d31', 1, '\x55524c', '\x68747470733a2f2f6578616d706c652e6f72672f31', 0, 86400, 1700000000, NULL, true, true, true, false);
INSERT INTO public.handles (handle, idx, type, data, ttl_type, ttl, "timestamp", refs, admin_read, admin_write, pub_read, pub_write) VALUES ('\x32302e3530302e39393939392f4142432d31', 2, '\x454d41494c', '\x61406578616d706c652e6f7267', 0, 86400, 1700000000, '7:20.500.99999/X\tY%0025%00E9', true, true, true, false);
INSERT INTO public.nas VALUES ('\x302e4e412f32302e3530302e3939393939');
