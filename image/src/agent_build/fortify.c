/*
 * Debian compiles libunwind with glibc's fortified printf, which musl does not have. These are the two
 * entry points it calls, without the checks: only the unwinder's own fatal messages pass through them.
 */
#include <stdarg.h>
#include <stdio.h>

int __fprintf_chk(FILE *stream, int level, const char *format, ...)
{
	va_list args;
	int written;

	(void)level;
	va_start(args, format);
	written = vfprintf(stream, format, args);
	va_end(args);
	return written;
}

int __snprintf_chk(char *out, size_t size, int level, size_t room, const char *format, ...)
{
	va_list args;
	int written;

	(void)level;
	(void)room;
	va_start(args, format);
	written = vsnprintf(out, size, format, args);
	va_end(args);
	return written;
}
