"""Forwards TCP from one address to another and keeps every byte for a while: `delay_proxy.py FROM TO MILLISECONDS`."""

import asyncio
import sys


async def pump(reader, writer, delay):
    """Read as fast as it comes; write each piece when its time has come, in order."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue()

    async def write():
        while (item := await waiting.get()) is not None:
            due, data = item
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(data)
            await writer.drain()
        writer.close()

    task = asyncio.create_task(write())
    try:
        while data := await reader.read(2**16):
            waiting.put_nowait((loop.time() + delay, data))
    except OSError:
        pass
    waiting.put_nowait(None)
    await asyncio.gather(task, return_exceptions=True)


async def main(listen, target, delay):
    async def answer(reader, writer):
        host, port = target.rsplit(":", 1)
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer, delay), pump(far_reader, writer, delay))

    host, port = listen.rsplit(":", 1)
    server = await asyncio.start_server(answer, host, int(port))
    print("ready", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1e3))
