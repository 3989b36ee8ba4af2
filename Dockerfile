# The page of `movers serve`: docker build -t movers . && docker run -p 7860:7860 movers
FROM python:3.11-slim
WORKDIR /src
COPY setup.py pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY movers movers
COPY metrics metrics
# With both indexes pip prefers the CPU build of torch, because 2.x+cpu is a higher version than 2.x.
RUN pip install --no-cache-dir --constraint constraints.txt \
    --extra-index-url https://download.pytorch.org/whl/cpu '.[demo]' && useradd --create-home movers
USER movers
WORKDIR /home/movers
EXPOSE 7860
CMD ["movers", "serve", "--host", "0.0.0.0", "--port", "7860"]
